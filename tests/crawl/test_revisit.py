"""A crawl that never ends: each page is visited again in its time, and none is lost, whenever it is killed."""

import random
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from crawl.runs import begin, crawl, fyke, settings, wait_until
from crawl.small_site import Answer, SmallSite, small_site
from fyke.archive.reading import read_table
from serve.kit import client

LEAST_S = 0.4
REVISIT = {"least_s": LEAST_S, "greatest_s": LEAST_S}


def visits(into: Path) -> dict[str, list[tuple[str, float]]]:
    """Outcome and time of each visit, by the end of the URL."""
    found: dict[str, list[tuple[str, float]]] = {}
    for row in read_table(into, "pages", ["url", "outcome", "fetched_at"]).to_pylist():
        found.setdefault(row["url"].rpartition("/")[2], []).append((row["outcome"], row["fetched_at"].timestamp()))
    return found


def assert_none_came_early(found: dict[str, list[tuple[str, float]]]) -> None:
    for of in found.values():
        assert all(later - before >= LEAST_S for (_, before), (_, later) in pairwise(of))


def run_until(into: Path, config: Path, true: Callable[[], bool], how: signal.Signals) -> None:
    """A crawl that never ends, until it gets a signal once something is true."""
    process = begin(into, config, "--revisit", start_new_session=True)
    try:
        wait_until(true)
    finally:
        process.send_signal(how)
        process.wait()


def asked_for(site: SmallSite, requests: int) -> bool:
    return site.asked.total() >= requests


def page(text: str) -> Answer:
    return 200, {"Content-Type": "text/html"}, text.encode()


def test_each_page_is_visited_again_in_its_time(tmp_path: Path) -> None:
    """What changes, goes and comes is found; a limit ends the crawl."""
    into = tmp_path / "crawl"
    config = settings(tmp_path, revisit=REVISIT, store={"checkpoint_s": 0.5})
    with small_site(30) as site:
        site.answers["/p7"] = lambda: page(f"text {site.asked['/p7']}")
        site.answers["/p8"] = lambda: page("soon away") if site.asked["/p8"] == 1 else (404, {}, b"")
        site.answers["/new"] = page("a new page")
        site.answers["/p9"] = lambda: page("9" if site.asked["/p9"] == 1 else "9 <a href=/new>new</a>")
        run = crawl(into, config, site.url, "--revisit", "--pages", "29")
    assert run.status == 0 and run.summary["ending"] == "pages", run.errors
    assert [run.summary["again"][name] for name in ("changed", "new", "gone")] == [4, 25, 1]
    told = fyke("status", str(into)).stdout
    assert "1 gone" in told and "fresh, by estimate" in told
    assert "the least time" in fyke("why", str(into), f"{site.url}p7").stdout
    found = visits(into)
    assert len(found) == 30 - 6 + 1  # those below p7, p8 and p9 are not linked
    assert {outcome for outcome, _ in found["p3"][1:]} == {"unchanged"}
    assert {outcome for outcome, _ in found["p7"]} == {"ok"}
    assert [outcome for outcome, _ in found["p8"]] == ["ok", "client_error", "gone"]
    assert [outcome for outcome, _ in found["p9"][:2]] == ["ok", "ok"] and found["new"][0][0] == "ok"
    assert_none_came_early(found)
    assert fyke("check", str(into)).returncode == 0
    with client(into) as asking:
        assert "Copies believed fresh" in asking.get(f"/crawl/{into.name}").text
    assert fyke("report", str(into), "--out", str(tmp_path / "report.html")).returncode == 0
    assert "of copies believed fresh" in (tmp_path / "report.html").read_text()


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("agents", "kills"), [(1, 4), (2, 2)])
def test_killed_at_any_moment_it_loses_no_page(tmp_path: Path, agents: int, kills: int) -> None:
    """In a plan, a visit, a checkpoint: nobody leaves the calendar, nobody comes before its time."""
    rng, into = random.Random(3), tmp_path / "crawl"
    config = settings(tmp_path, politeness={"host_delay_s": 0.005}, revisit=REVISIT, store={"checkpoint_s": 0.1})
    with small_site(20) as site:
        assert crawl(into, config, site.url, "--agents", str(agents)).status == 0
        for _ in range(kills):
            enough = site.asked.total() + rng.randrange(1, 40)
            run_until(into, config, partial(asked_for, site, enough), signal.SIGKILL)
        site.asked.clear()
        run_until(into, config, lambda: len(site.asked) >= 20 and min(site.asked.values()) > 1, signal.SIGINT)
    found = visits(into)
    assert len(found) == 20
    assert_none_came_early(found)
    assert "fresh, by estimate" in fyke("status", str(into)).stdout
    assert fyke("check", str(into)).returncode == 0


def test_what_a_sitemap_says_of_a_page_is_known_until_its_next_visit(tmp_path: Path) -> None:
    """A date of before the visit says nothing."""
    into = tmp_path / "crawl"
    config = settings(tmp_path, revisit={"least_s": LEAST_S, "greatest_s": 3600}, store={"checkpoint_s": 0.2})
    with small_site(8) as site:
        site.answers["/robots.txt"] = lambda: (200, {}, f"Sitemap: {site.url}sitemap.xml".encode())

        def sitemap() -> Answer:
            dates = {"p1": "2020-01-01", "p3": datetime.now(UTC).isoformat(), "p4": "2021-02-03"}
            rows = (f"<url><loc>{site.url}{page}</loc><lastmod>{at}</lastmod></url>" for page, at in dates.items())
            entries = "".join(rows)
            return 200, {"Content-Type": "text/xml"}, f"<urlset>{entries}</urlset>".encode()

        site.answers["/sitemap.xml"] = sitemap
        assert crawl(into, config, site.url).status == 0
        run_until(into, config, lambda: site.asked["/sitemap.xml"] >= 4, signal.SIGINT)
        assert site.asked["/p3"] == 1
    said = "a sitemap or feed has said"
    assert said in fyke("why", str(into), f"{site.url}p3").stdout
    assert said not in fyke("why", str(into), f"{site.url}p1").stdout
