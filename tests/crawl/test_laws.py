"""The laws of a crawl, as the servers and the files tell them."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from crawl.runs import archived, begun, crawl, crawl_killed, fyke, settings
from fyke.archive.reading import read_table
from fyke.core.urls import pay_level_domain, split
from fyke.lab.simweb import (
    IntendedCrawl,
    NameShares,
    PageShares,
    RobotsShares,
    WebSpec,
    audit_politeness,
    lively,
    plain,
    running_web,
)

EXAMPLES = Path(__file__).parents[2] / "examples"


def expected_exactly(into: Path, expectation, requests, ports) -> None:
    """Every expected page archived once, and the beginning of each that breaks off; nothing else fetched,
    nothing forbidden asked for."""
    got = Counter(archived(into))
    auxiliary = expectation.auxiliary
    pages = {url for url in got if url not in auxiliary}
    assert not expectation.archived - pages, sorted(expectation.archived - pages)[:5]
    assert not pages - expectation.archived, sorted(pages - expectation.archived)[:5]
    assert max(got.values()) == 1
    assert sorted(begun(into)) == sorted(expectation.begun)
    asked = asked_for(requests, ports)
    assert not set(asked) & expectation.forbidden
    assert not set(asked) & expectation.avoided
    outside = set(asked) - expectation.requested - auxiliary
    assert not outside, sorted(outside)[:5]
    again = [url for url, n in asked.items() if n > 1 and url in expectation.archived - expectation.passing]
    assert not again, again[:5]


def asked_for(requests, ports) -> Counter[str]:
    """Every URL asked for by http, as often as it was. (The ledger has no URLs of gopher and FTP.)"""
    rows = requests.to_pydict()
    return Counter(
        f"{scheme}://{host}:{ports.http}{path}"
        for scheme, host, path in zip(rows["scheme"], rows["host"], rows["path"], strict=True)
        if scheme == "http"
    )


def test_exactness(tmp_path: Path) -> None:
    """20,000 pages on 500 hosts with robots of every kind: each fetched once, none forbidden, none outside."""
    spec = lively(pages=20_000, hosts=500, crawl_delay_s=0.1)
    with running_web(spec) as web:
        into = tmp_path / "crawl"
        run = crawl(into, settings(tmp_path, web), *web.seeds, "--scope", "web")
        assert run.status == 0, run.errors
        expected_exactly(into, web.perfect(IntendedCrawl(scope="web")), web.ledger(), web.ports)
    done = fyke("check", str(into))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("scope", "options"),
    [
        ("host", ["--scope", "host"]),
        ("domain", ["--scope", "domain"]),
        ("web", ["--scope", "web", "--requisites"]),
    ],
)
def test_scopes_are_exact(tmp_path: Path, scope: str, options: list[str]) -> None:
    with running_web(lively(pages=700, hosts=24, crawl_delay_s=0.1)) as web:
        into = tmp_path / "crawl"
        run = crawl(into, settings(tmp_path, web), *web.seeds, *options)
        assert run.status == 0, run.errors
        plan = IntendedCrawl(scope=scope, requisites="--requisites" in options)
        expected_exactly(into, web.perfect(plan), web.ledger(), web.ports)


@pytest.mark.parametrize(
    "policy",
    [
        {"default_budget_urls": 1, "budget": "equal", "order": "random"},
        {"default_budget_urls": 1, "max_budget_urls": 3, "order": "in-degree", "table_memory_bytes": 10_000},
        {"default_budget_urls": 2, "enforcement": "naive", "order": "depth"},
        {"enforcement": "none", "order": "patterns", "order_patterns": ["[02468]$", "/news/"]},
    ],
    ids=["equal", "reputation", "naive", "none"],
)
def test_policies_are_exact(tmp_path: Path, policy: dict[str, Any]) -> None:
    """Whatever waits for whatever reason, in the end each page was fetched once."""
    with running_web(lively(pages=700, hosts=40, crawl_delay_s=0.1)) as web:
        into = tmp_path / "crawl"
        run = crawl(into, settings(tmp_path, web, frontier=policy), *web.seeds, "--scope", "web")
        assert run.status == 0, run.errors
        expected_exactly(into, web.perfect(IntendedCrawl(scope="web")), web.ledger(), web.ports)


def test_what_has_no_budget_waits_and_is_explained(tmp_path: Path) -> None:
    """With budgets for popular domains only, the crawl ends when those are done, and the rest still waits."""
    with running_web(plain(pages=600, hosts=60)) as web:
        into = tmp_path / "crawl"
        run = crawl(into, settings(tmp_path, web, frontier={"budget": "popular"}), *web.seeds, "--scope", "web")
        assert run.status == 0 and run.summary["ending"] == "finished", run.errors
        expectation = web.perfect(IntendedCrawl(scope="web")).archived
    got = set(archived(into))
    assert got < expectation
    without = {row["domain"] for row in read_table(into, "domains").to_pylist() if not row["budget"]}
    assert run.summary["over_budget"] > 0 and without
    met = {row["target_url"] for row in read_table(into, "links").to_pylist()}
    waiting = [url for url in sorted(met & expectation - got) if pay_level_domain(split(url).host) in without]
    assert len(waiting) == run.summary["over_budget"]
    said = fyke("why", str(into), waiting[0])
    assert "waiting: because its domain is over its budget" in said.stdout, said.stdout


def test_each_robots_is_asked_for_once(tmp_path: Path) -> None:
    """The gate asks a host for its rules once, before any page, and again after a restart only if they are stale."""
    with running_web(plain(pages=600, hosts=60)) as web:
        into, config = tmp_path / "crawl", settings(tmp_path, web)
        for pages in ("100", "1000"):
            run = crawl(into, config, *web.seeds, "--scope", "web", "--pages", pages)
            assert run.status == 0, run.errors
        rows = web.ledger().select(["host", "path", "arrived"]).to_pylist()
    first = {row["host"]: row for row in sorted(rows, key=lambda row: -row["arrived"])}
    assert {row["path"] for row in first.values()} == {"/robots.txt"}
    asked = Counter(row["host"] for row in rows if row["path"] == "/robots.txt")
    assert len(asked) == 60
    assert sum(asked.values()) <= 60 + 15, asked  # those of the seconds before the restart may come again


@pytest.mark.parametrize("depth", [1, 3])
def test_depth_is_exact(tmp_path: Path, depth: int) -> None:
    """Every page that can be reached in so many links, however the crawl came upon it first."""
    with running_web(plain(pages=1500, hosts=30)) as web:
        into = tmp_path / "crawl"
        run = crawl(into, settings(tmp_path, web), *web.seeds, "--scope", "web", "--depth", str(depth))
        assert run.status == 0, run.errors
        expected_exactly(into, web.perfect(IntendedCrawl(scope="web", depth=depth)), web.ledger(), web.ports)


def test_page_limit_is_exact_and_can_be_raised(tmp_path: Path) -> None:
    with running_web(plain(pages=400, hosts=10)) as web:
        into, config = tmp_path / "crawl", settings(tmp_path, web)
        for limit in (30, 75):
            run = crawl(into, config, *web.seeds, "--scope", "web", "--pages", str(limit))
            assert run.status == 0, run.errors
            assert run.summary["ending"] == "pages" and len(set(archived(into))) == limit
        again = crawl(into, config, *web.seeds, "--scope", "web", "--pages", "75")
        assert again.summary["already"] and again.status == 0


@pytest.mark.timeout(180)
def test_politeness(tmp_path: Path) -> None:
    """300 hosts on 40 addresses: not one request too soon, by the servers' own clock."""
    polite = {"host_delay_s": 0.15, "address_delay_s": 0.03, "delay_factor": 5.0, "max_delay_s": 1.0}
    spec = WebSpec(
        pages=1200,
        hosts=300,
        addresses=40,
        domains=100,
        pages_exponent=0.3,
        robots_shares=RobotsShares(delay=0.2, allow=0.2, moved_away=0.05),
        page_shares=PageShares(throttled=0.03, throttled_date=0.02, slow=0.02, flaky=0.02, redirect_away=0.02),
    )
    with running_web(spec) as web:
        into = tmp_path / "crawl"
        run = crawl(into, settings(tmp_path, web, politeness=polite), *web.seeds, "--scope", "web")
        assert run.status == 0, run.errors
        requests = web.ledger()
        violations = audit_politeness(requests, 0.15, 0.03, 5.0, web.crawl_delays(), delay_ceiling_s=1.0)
        assert not violations, violations[:5]
        assert requests.num_rows > 1500 and len(set(requests.column("host").to_pylist())) == 300
        assert set(archived(into)) >= web.perfect(IntendedCrawl(scope="web")).archived


def test_politeness_follows_budgets_to_the_floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delays that shrink with the budget of a domain: never below the floor, and not for one without reputation.

    The budget function is the example's: among so few domains ours raises nobody.
    """
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    polite = {"host_delay_s": 0.4, "min_host_delay_s": 0.1, "address_delay_s": 0.05, "min_address_delay_s": 0.02}
    spec = WebSpec(pages=500, hosts=100, addresses=20, domains=50, pages_exponent=0.3)
    with running_web(spec) as web:
        into = tmp_path / "crawl"
        config = settings(tmp_path, web, politeness=polite, frontier={"budget": "budget_function:SquareRoot"})
        run = crawl(into, config, *web.seeds, "--scope", "web")
        assert run.status == 0, run.errors
        requests = web.ledger()
    assert not audit_politeness(requests, 0.1, 0.02)
    assert audit_politeness(requests, 0.4), "no domain's delay shrank"
    floors = {row["domain"]: row["host_delay_s"] for row in read_table(into, "domains").to_pylist()}
    assert min(floors.values()) < 0.4


@pytest.mark.timeout(240)
def test_kill(tmp_path: Path) -> None:
    """Killed 25 times at random, the crawl has the pages of an undisturbed one, each archived once."""
    rng = random.Random(7)
    shares = {"name_shares": NameShares(), "page_shares": PageShares(redirect=0.05, duplicate=0.05)}
    spec = lively(pages=1500, hosts=40, pages_exponent=0.45, **shares)  # no host so large that it alone is left
    with running_web(spec) as web:
        into = tmp_path / "crawl"
        slow = {"host_delay_s": 0.25}
        config = settings(tmp_path, web, politeness=slow, store={"checkpoint_s": 0.2, "warc_bytes": 700_000})
        arguments = (*web.seeds, "--scope", "web")
        kills = sum(crawl_killed(into, config, 0.5 + rng.random(), *arguments) for _ in range(25))
        run = crawl(into, config, *arguments)
        assert run.status == 0, run.errors
        assert kills == 25
        got = Counter(archived(into))
        expectation = web.perfect(IntendedCrawl(scope="web"))
        assert set(got) - expectation.auxiliary == expectation.archived
        assert max(got.values()) == 1
        assert not audit_politeness(web.ledger(), 0.25)  # also from before a kill to after it
    done = fyke("check", str(into))
    assert done.returncode == 0, done.stdout
    assert_readable(into, got)


def verified(record: Any) -> bool:
    """What fastwarc says of the payload."""
    record.parse_http()
    return bool(record.verify_payload_digest())


def assert_readable(into: Path, got: Counter[str]) -> None:
    """warcio and fastwarc read every record, and find each page once: itself, or what it is a copy of."""
    pages = ("response", "resource", "revisit")
    by_warcio: Counter[str] = Counter()
    by_fastwarc: Counter[str] = Counter()
    for path in sorted((into / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                record.raw_stream.read()
                by_warcio[record.rec_headers["WARC-Target-URI"]] += record.rec_type in pages
        with path.open("rb") as file:
            for record in FastIterator(file, parse_http=False):
                kind = record.headers.get("WARC-Type")
                assert kind == "revisit" or "WARC-Payload-Digest" not in record.headers or verified(record)
                by_fastwarc[record.headers.get("WARC-Target-URI")] += kind in pages
    assert by_warcio == by_fastwarc
    assert all(by_warcio[url] == 1 for url in got if not url.endswith("/robots.txt"))
