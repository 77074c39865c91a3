"""A pass over a crawl that was stopped by a limit visits the known pages first, then those that nobody has visited."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from crawl.runs import begin, crawl_killed, killed_after, settings
from crawl.runs import crawl_here as crawl
from crawl.runs import fyke_here as fyke
from crawl.small_site import Answer, SmallSite, small_site
from fyke.archive.reading import read_table

PAGES = 120
LIMIT = 30
LETTERS = str.maketrans("0123456789", "ghijklmnop")
HTML = {"Content-Type": "text/html"}


def links(numbers: Iterator[int] | range) -> str:
    return "".join(f"<a href=/p{number}>{number}</a>" for number in numbers)


@pytest.fixture
def site() -> Iterator[SmallSite]:
    """An index that links to all of `PAGES`."""
    with small_site(PAGES) as made:
        made.answers["/"] = (200, HTML, links(range(1, PAGES)).encode())
        yield made


def visits(into: Path) -> Counter[str]:
    """How often each page was visited."""
    return Counter(read_table(into, "pages", ["url"]).column("url").to_pylist())


def asked(site: SmallSite) -> list[str]:
    """The URLs that were asked for since the site forgot it, in the order of their first requests."""
    return [site.url + path.removeprefix("/") for path in site.asked if path != "/robots.txt"]


def changing() -> Answer:
    words = (random.randbytes(6).hex().translate(LETTERS) for _ in range(60))
    return 200, HTML, f"<p>{' '.join(words)}".encode()


@pytest.mark.parametrize("agents", ["1", "2"])
@pytest.mark.parametrize("depth", [0, 3])
def test_known_pages_come_first_and_what_waited_comes_after(
    site: SmallSite, tmp_path: Path, depth: int, agents: str
) -> None:
    into, more = tmp_path / "crawl", ("--agents", agents)
    config = settings(tmp_path, crawl={"depth": depth})
    assert crawl(into, config, site.url, "--pages", str(LIMIT), *more).summary["ending"] == "pages"
    known = visits(into)
    assert known.total() == len(known) == LIMIT
    site.asked.clear()
    run = crawl(into, config, "--again", "--pages", str(LIMIT))
    assert run.summary["ending"] == "pages", run.errors
    found = run.summary["again"]
    assert (found["unchanged"], found["changed"], found["new"]) == (LIMIT, 0, LIMIT)
    assert set(asked(site)[:LIMIT]) == set(known)
    after = visits(into)
    assert {url: after[url] for url in known} == dict.fromkeys(known, 2)
    assert len(after) == 2 * LIMIT and after.total() == 3 * LIMIT
    assert crawl(into, config).summary["ending"] == "finished"
    assert visits(into) == {**dict.fromkeys(site.all_urls(), 1), **dict.fromkeys(known, 2)}
    assert max(site.asked.values()) == 1


def test_known_pages_that_changed_use_up_the_limit(site: SmallSite, tmp_path: Path) -> None:
    into, config = tmp_path / "crawl", settings(tmp_path)
    site.answers |= {f"/p{number}": changing for number in range(1, PAGES)}
    assert crawl(into, config, site.url, "--pages", str(LIMIT)).status == 0
    known = visits(into)
    for number in count(2):
        run = crawl(into, config, "--again", "--pages", "20")
        assert run.summary["again"]["changed"] == 20 and run.summary["again"]["new"] == 0, run.summary
        after = visits(into)
        assert set(after) == set(known)
        if number == 3:  # who had no visit in the first pass is the first of the next
            assert min(after.values()) == 2
            break
    assert crawl(into, config).summary["ending"] == "finished"
    assert set(visits(into)) == site.all_urls()


def test_visits_are_as_many_as_were_asked_for(site: SmallSite, tmp_path: Path) -> None:
    """Also after a pass that came to its limit, and left known pages that wait."""
    into, config = tmp_path / "crawl", settings(tmp_path)
    site.answers |= {f"/p{number}": changing for number in range(1, PAGES)}
    for more in ((site.url, "--pages", str(LIMIT)), ("--again", "--pages", "5"), ("--again", "--visits", "3")):
        run = crawl(into, config, *more)
        assert run.status == 0, run.errors
    assert run.summary["ending"] == "finished" and run.summary["again"]["new"] == PAGES - LIMIT
    assert run.summary["again"]["changed"] + run.summary["again"]["unchanged"] == 3


def test_what_waits_at_another_host_takes_no_page_of_a_known_one(site: SmallSite, tmp_path: Path) -> None:
    """The host that is known is slow, the other one is not."""
    into, slow = tmp_path / "crawl", {"match": "127.0.0.1", "delay_s": 0.1}
    with small_site(PAGES, host="127.0.0.2") as other:
        for at, last in ((site, LIMIT), (other, PAGES)):
            at.answers |= {f"/p{number}": changing for number in range(1, last)}
        there = "".join(f"<a href={other.url}p{number}>{number}</a>" for number in range(1, PAGES))
        site.answers["/"] = (200, HTML, f"{links(range(1, LIMIT))}{there}".encode())
        config = settings(tmp_path, dns={"private": ["127.0.0.1", "127.0.0.2"]}, crawl={"scope": "web"})
        config.write_text(f"{config.read_text()}\n[[site]]\n" + "".join(f"{k} = {v!r}\n" for k, v in slow.items()))
        assert crawl(into, config, site.url, "--pages", str(LIMIT)).status == 0
        known = visits(into)
        run = crawl(into, config, "--again", "--pages", str(LIMIT - 5))
    assert run.summary["again"]["new"] == 0, run.summary
    assert set(visits(into)) == set(known)


@pytest.mark.timeout(180)
def test_killed_on_the_way_the_pass_goes_on_as_it_began(site: SmallSite, tmp_path: Path) -> None:
    into = tmp_path / "crawl"
    assert crawl(into, settings(tmp_path), site.url, "--pages", "40").status == 0
    known = visits(into)
    site.asked.clear()
    config = settings(tmp_path, politeness={"host_delay_s": 0.1}, store={"checkpoint_s": 0.1})
    kills = int(killed_after(begin(into, config, "--again", "--pages", "40", start_new_session=True), 1.5))
    for _ in range(3):
        if "killed" in fyke("status", str(into)).stdout:  # else the same command would begin another pass
            kills += crawl_killed(into, config, 0.5 + random.random(), "--again", "--pages", "40")
    assert kills
    config = settings(tmp_path, store={"checkpoint_s": 0.1})
    run = crawl(into, config, "--again", "--pages", "40") if "killed" in fyke("status", str(into)).stdout else None
    assert run is None or run.status == 0
    first = asked(site)
    assert set(first[: len(known)]) == set(known)
    after = visits(into)
    assert {url: after[url] for url in known} == dict.fromkeys(known, 2)
    assert len(after) == 80 and after.total() == 120
    found = json.loads(fyke("status", str(into), "--json").stdout)["again"]
    assert (found["number"], found["unchanged"], found["new"]) == (1, 40, 40)
    assert crawl(into, config).summary["ending"] == "finished"
    assert visits(into) == {**dict.fromkeys(site.all_urls(), 1), **dict.fromkeys(known, 2)}
    assert fyke("check", str(into)).returncode == 0
