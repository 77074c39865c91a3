"""What the tables of domains and hosts say is what the links and the pages say."""

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from crawl.runs import crawl, settings
from crawl.small_site import small_site
from fyke.archive.reading import read_table
from fyke.core.batches import LinkKind
from fyke.core.urls import pay_level_domain, split
from fyke.lab.simweb import lively, plain, running_web


@pytest.mark.parametrize("enforcement", ["beast", "naive", "none"])
def test_the_table_of_domains(tmp_path: Path, enforcement: str) -> None:
    """In-degrees, ranks, budgets and pages, whatever becomes of URLs over budget."""
    with running_web(lively(pages=1500, hosts=60, crawl_delay_s=0.1)) as web:
        into = tmp_path / "crawl"
        config = settings(tmp_path, web, frontier={"enforcement": enforcement, "table_memory_bytes": 20_000})
        run = crawl(into, config, *web.seeds, "--scope", "web")
        assert run.status == 0, run.errors
    table = read_table(into, "domains").to_pydict()
    names = table["domain"]
    assert len(names) == len(set(names))
    assert dict(zip(names, table["in_degree"], strict=True)) == in_degrees(into, set(names))
    pages = [page for page in read_table(into, "pages").to_pylist() if page["kind"] != "listing"]
    fetched = Counter(page["domain"] for page in pages if page["outcome"] == "ok")
    assert dict(zip(names, table["fetched"], strict=True)) == {name: fetched[name] for name in names}
    assert set(table["waiting"]) == {0}
    best = max(table["in_degree"])
    assert [rank == 1 for rank in table["rank"]] == [degree == best for degree in table["in_degree"]]
    assert set(table["budget"]) == {10}, "among so few domains nobody has a reputation"


def in_degrees(into: Path, names: set[str]) -> dict[str, int]:
    """Distinct other domains in the table of links to each domain."""
    home = {page["key"]: page["domain"] for page in read_table(into, "pages").to_pylist()}
    linking: dict[str, set[str]] = defaultdict(set)
    for link in read_table(into, "links").to_pylist():
        target = pay_level_domain(split(link["target_url"]).host)
        if link["kind"] in (LinkKind.PAGE, LinkKind.REDIRECT) and target != home[link["source"]]:
            linking[target].add(home[link["source"]])
    return {name: len(linking[name]) for name in names}


def test_a_single_domain_costs_nothing(tmp_path: Path) -> None:
    """With one domain in scope neither STAR nor BEAST touches the disk."""
    with running_web(plain(pages=300, hosts=1)) as web:
        into = tmp_path / "crawl"
        run = crawl(into, settings(tmp_path, web), *web.seeds, "--scope", "domain")
        assert run.status == 0, run.errors
        names = {path.name.partition("-")[0] for path in (into / "state" / "shard-0000").iterdir()}
    assert not names & {"beast", "edges", "ranking"}, names
    (row,) = read_table(into, "domains").to_pylist()
    assert row["fetched"] == run.summary["pages"] and row["in_degree"] == row["waiting"] == 0


@pytest.mark.parametrize("delay", ["", "Crawl-delay: 0\n", "Crawl-delay: 0.1\n"])
def test_a_host_has_the_pages_it_brought_and_the_delay_it_asks_for(tmp_path: Path, delay: str) -> None:
    into = tmp_path / "crawl"
    with small_site(8) as site:
        site.answers["/p1"] = 404, {}, b"not here"
        site.answers["/p2"] = 302, {"Location": "/p3"}, b""
        if delay:
            site.answers["/robots.txt"] = 200, {"Content-Type": "text/plain"}, f"User-agent: *\n{delay}".encode()
        assert crawl(into, settings(tmp_path), site.url).status == 0
    (host,) = read_table(into, "hosts").to_pylist()
    outcomes = read_table(into, "pages", ["outcome"])["outcome"].to_pylist()
    assert (host["pages"], host["failures"]) == (outcomes.count("ok"), 0) and len(outcomes) > host["pages"]
    assert host["crawl_delay_s"] == (pytest.approx(0.1) if "0.1" in delay else None)
