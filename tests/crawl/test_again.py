"""A pass over a finished crawl finds exactly what has become of its pages, and leaves an archive others can read."""

import csv
import json
import os
import random
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from crawl.nginx import NGINX, nginx
from crawl.runs import crawl_here as crawl
from crawl.runs import crawl_killed, settings
from crawl.runs import fyke_here as fyke
from crawl.small_site import Answer, SmallSite, small_site
from fyke.archive.reading import read_table
from serve.kit import client

needs_nginx = pytest.mark.skipif(not NGINX.exists(), reason="needs nginx")
LAST_WEEK = 1_700_000_000


def lay(root: Path, pages: Mapping[str, str], modified: int = LAST_WEEK) -> None:
    """Have exactly `pages` below `root`, by name and text; what is as it was keeps its time."""
    root.mkdir(exist_ok=True)
    for path in root.iterdir():
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = root / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            os.utime(path, (modified, modified))


def site(count: int, salt: str = "") -> dict[str, str]:
    """An index that links to `count` pages of about 5 kB; those whose number `salt` names are others."""
    rng = random.Random(5)
    pages = {f"p{n}.html": f"<title>{n}</title><p>{rng.randbytes(2500).hex()}" for n in range(count)}
    links = "".join(f"<a href={name}>{name}</a> " for name in pages)
    return {"index.html": f"<title>index</title>{links}", **pages}


def outcomes(into: Path) -> dict[str, list[str]]:
    """What became of each page at its visits, by the end of its URL."""
    found: dict[str, list[str]] = {}
    for row in read_table(into, "pages", ["url", "outcome"]).to_pylist():
        found.setdefault(row["url"].rpartition("/")[2], []).append(row["outcome"])
    return found


def records(into: Path) -> list[tuple[str, str]]:
    """Type and URL of each record, as warcio and fastwarc agree."""
    ours, theirs = [], []
    for path in sorted((into / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                record.raw_stream.read()
                ours.append((record.rec_type, record.rec_headers["WARC-Target-URI"]))
        with path.open("rb") as file:
            for record in FastIterator(file, parse_http=False):
                assert "WARC-Block-Digest" not in record.headers or record.verify_block_digest()
                theirs.append((record.headers["WARC-Type"], record.headers.get("WARC-Target-URI")))
    assert ours == theirs
    return ours


def assert_mended_as_it_was(into: Path) -> None:
    """The archive alone says all that was in the table of pages and in the indexes."""
    rows = read_table(into, "pages").drop(["duration_s"]).to_pylist()
    lines = {path: path.read_bytes() for path in into.glob("warc/*.cdxj")}
    for path in (*into.glob("tables/pages-*"), *lines):
        path.unlink()
    mended = fyke("check", str(into), "--repair")
    assert mended.returncode == 0, mended.stdout
    assert read_table(into, "pages").drop(["duration_s"]).to_pylist() == rows
    assert {path: path.read_bytes() for path in into.glob("warc/*.cdxj")} == lines


def changed(pages: Mapping[str, str]) -> dict[str, str]:
    """Pages 0 to 4 changed, 5 to 7 away, two new; the index tells."""
    after = {name: text for name, text in pages.items() if name not in ("p5.html", "p6.html", "p7.html")}
    for n in range(5):
        after[f"p{n}.html"] += " changed"
    for n in (100, 101):
        after[f"p{n}.html"] = f"<title>{n}</title><p>a new page"
    after["index.html"] += "<a href=p100.html>new</a><a href=p101.html>new</a>"
    return after


@needs_nginx
def test_a_pass_finds_exactly_what_has_become_of_each_page(tmp_path: Path) -> None:
    root, into, config = tmp_path / "root", tmp_path / "crawl", settings(tmp_path)
    before = site(60)
    lay(root, before)
    with nginx(root) as url:
        first = crawl(into, config, url)
        assert first.status == 0 and first.summary["pages"] == 61, first.errors
        assert not first.summary["again"]
        lay(root, changed(before), LAST_WEEK + 1000)
        run = crawl(into, config, "--again")
        assert run.status == 0, run.errors
        found = run.summary["again"]
        assert {name: found[name] for name in ("number", "unchanged", "changed", "new", "gone")} == {
            "number": 1, "unchanged": 52, "changed": 6, "new": 2, "gone": 0,
        }  # fmt: skip
        assert "52 unchanged, 6 changed, 2 new, 0 gone" in run.errors
        whole = sum(len(text) for name, text in changed(before).items() if before.get(name) != text)
        assert found["bytes"] < whole + 0.1 * sum(map(len, before.values()))
        visits = outcomes(into)
        assert visits["p20.html"] == ["ok", "unchanged"] and visits["p1.html"] == ["ok", "ok"]
        assert visits["p5.html"] == ["ok", "client_error"] and visits["p100.html"] == ["ok"]
        kinds = [kind for kind, _ in records(into)]
        assert kinds.count("revisit") == 52
        checked = fyke("check", str(into))
        assert checked.returncode == 0, checked.stdout

        again = crawl(into, config, "--again")
        assert {name: again.summary["again"][name] for name in ("number", "unchanged", "changed", "new", "gone")} == {
            "number": 2, "unchanged": 60, "changed": 0, "new": 0, "gone": 3,
        }  # fmt: skip
        assert outcomes(into)["p5.html"][-1] == "gone"
        assert_mended_as_it_was(into)
        third = crawl(into, config, "--again")
        assert third.summary["again"]["unchanged"] == 60 and third.summary["again"]["gone"] == 0
    assert outcomes(into)["p5.html"][2:] == ["gone", "gone"]
    checked = fyke("check", str(into))
    assert checked.returncode == 0, checked.stdout


def test_counts_of_a_pass_and_of_all_visits_are_told_apart(tmp_path: Path) -> None:
    """Each line that counts says of what, and is true of the rows of that."""
    into, config = tmp_path / "crawl", settings(tmp_path)
    with small_site(8) as site:
        assert crawl(into, config, site.url).status == 0
        assert "since the crawl began" not in fyke("status", str(into)).stdout
        site.answers["/p5"] = (404, {}, b"")
        for number, gone in enumerate((0, 1, 0), 1):
            run = crawl(into, config, "--again")
            assert run.status == 0, run.errors
            visits = [kind for kinds in outcomes(into).values() for kind in kinds]
            for told in (run.errors, fyke("status", str(into)).stdout):
                (of_pass,) = re.findall(rf"pass {number}: .*, (\d+) gone since the pass before; ", told)
                assert int(of_pass) == gone
                before, after = told.split(f"of all {len(visits)} visits since the crawl began:\n")
                counted = re.findall(r"^ +(\d+)  ([a-z ]+)$", after, re.MULTILINE)
                for kind in {*visits} - {"ok"}:
                    assert (str(visits.count(kind)), kind.replace("_", " ")) in counted
                assert not re.findall(r"^ +\d+  gone$", before, re.MULTILINE)
    assert visits.count("gone") == 2


def test_what_is_gone_is_asked_for_seldom_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    into, config, away = tmp_path / "crawl", settings(tmp_path), (404, {}, b"")
    monkeypatch.setattr("fyke.frontier.gone.LOOK_S", 0.0)
    with small_site(8) as site:
        assert crawl(into, config, site.url).status == 0
        site.answers["/p5"] = away
        for gone in (0, 1, 0):  # counted once, when it becomes gone
            assert crawl(into, config, "--again", "--visits", "100").summary["again"]["gone"] == gone
        assert outcomes(into)["p5"] == ["ok", "client_error", "gone"]
        assert "with a limit leave it out until" in fyke("why", str(into), f"{site.url}p5").stdout
        monkeypatch.setattr("fyke.frontier.gone.GONE_S", 0.0)
        for answer in (away, (200, {"Content-Type": "text/html"}, b"here again")):
            site.answers["/p5"] = answer
            assert crawl(into, config, "--again", "--visits", "100").summary["again"]["gone"] == 0
    assert outcomes(into)["p5"][3:] == ["gone", "ok"]


def test_a_pass_over_all_pages_asks_for_those_that_are_gone(tmp_path: Path) -> None:
    """Whoever mends a broken link sees it in the next pass."""
    into, config = tmp_path / "crawl", settings(tmp_path)
    with small_site(8) as site:
        site.answers["/p5"] = (404, {}, b"")
        for again in ([site.url], ["--again"], ["--again"], ["--again"]):
            assert crawl(into, config, *again).status == 0
        assert fyke("links", str(into), "--broken").returncode == 1
        del site.answers["/p5"]
        assert crawl(into, config, "--again").status == 0
        told = fyke("links", str(into), "--broken")
        assert told.returncode == 0, told.stdout
    assert outcomes(into)["p5"][-1] == "ok"


def test_what_robots_txt_forbids_was_never_visited_whatever_asks_again(tmp_path: Path) -> None:
    into, config = tmp_path / "crawl", settings(tmp_path)
    with small_site(4) as site:
        site.answers["/robots.txt"] = (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /p2\n")
        for again in ([site.url], ["--again"], ["--again"]):
            assert crawl(into, config, *again).status == 0
        told = {page: fyke("why", str(into), f"{site.url}{page}").stdout for page in ("p1", "p2")}
    assert "visited 3 times" in told["p1"] and "visited" not in told["p2"].partition("\n")[2], told


def assert_changes_are_told(into: Path, tmp_path: Path, between: str) -> None:
    for kind, read in (("jsonl", partial(map, json.loads)), ("csv", csv.DictReader)):
        out = tmp_path / f"changes.{kind}"
        run = fyke("export", str(into), "--to", kind, "--changes", "--since", between, "--out", str(out))
        assert run.returncode == 0, run.stderr
        told = {row["url"].rpartition("/")[2]: row["change"] for row in read(out.read_text().splitlines())}
        assert told == {"a.html": "changed", "b.html": "gone"}
    out = tmp_path / "new.jsonl"
    assert fyke("export", str(into), "--to", "jsonl", "--since", between, "--out", str(out)).returncode == 0
    assert ["durian" in line for line in out.read_text().splitlines()] == [True]
    refused = fyke("export", str(into), "--to", "wacz", "--since", between)
    assert refused.returncode == 2 and "--since selects pages" in refused.stderr


@needs_nginx
def test_readers_have_the_newest_version_and_drop_what_is_gone(tmp_path: Path) -> None:
    root, into, config = tmp_path / "root", tmp_path / "crawl", settings(tmp_path)
    words = {"a.html": "apricot", "b.html": "banana", "c.html": "cherry"}
    before = {
        name: f"<title>{name}</title><p>" + f"{word} in a long enough sentence. " * 5 for name, word in words.items()
    }
    before["index.html"] = "<title>all</title>" + "".join(f"<a href={name}>{name}</a>" for name in words)
    lay(root, before)
    with nginx(root) as url:
        assert crawl(into, config, url).status == 0
        assert fyke("index", str(into)).returncode == 0
        between = datetime.now(UTC).isoformat()
        after = {name: text.replace("apricot", "durian") for name, text in before.items() if name != "b.html"}
        for expected in (1, 0):  # a page is gone when it is away for the second time
            lay(root, after, LAST_WEEK + 1000)
            time.sleep(1)  # copies are told by their second
            assert crawl(into, config, "--again").status == 0
            assert fyke("index", str(into)).returncode == 0
            assert fyke("search", str(into), "banana").returncode == 1 - expected
            assert [fyke("search", str(into), word).returncode for word in ("apricot", "durian", "cherry")] == [1, 0, 0]
    out = tmp_path / "out.jsonl"
    assert fyke("export", str(into), "--to", "jsonl", "--out", str(out)).returncode == 0
    texts = {line["url"].rpartition("/")[2]: line["text"] for line in map(json.loads, out.read_text().splitlines())}
    assert set(texts) == {"", "a.html", "c.html"} and "durian" in texts["a.html"]
    assert_changes_are_told(into, tmp_path, between)
    assert fyke("export", str(into), "--to", "wacz", "--out", str(tmp_path / "out.wacz")).returncode == 0
    said = fyke("why", str(into), f"{url}a.html").stdout
    assert "visited 3 times since" in said and "its content changed 1 time since then" in said
    assert "it changes every" in said
    assert "never since then" in fyke("why", str(into), f"{url}c.html").stdout
    told = fyke("why", str(into), f"{url}b.html").stdout
    assert (
        "gone, status 404" in told and "it has now" not in told and "the content it last had was first fetched" in told
    )
    with client(into) as asking:
        address = f"{url}a.html"
        shown = asking.get("/copy", params={"url": address}).text
        stamps = re.findall(r"/copy\?[^\"]*at=(\d{14})", shown)
        assert len(stamps) == 2  # the other dates
        told = asking.get("/diff", params={"url": address}).text
        assert "<del>apricot</del><ins>durian</ins>" in told and told.count("<option") == 4
        backwards = asking.get("/diff", params={"url": address, "old": stamps[0], "new": stamps[1]}).text
        assert "<del>durian</del><ins>apricot</ins>" in backwards
        assert asking.get("/diff", params={"url": f"{url}c.html"}).status_code == 404
        texts = [asking.get("/raw", params={"url": address, "at": at}).text for at in ("", *stamps)]
        assert ["durian" in text for text in texts] == [True, True, False] and "apricot" in texts[2]


@pytest.mark.timeout(180)
def test_killed_passes_lose_no_page_and_visit_none_twice(tmp_path: Path) -> None:
    """The servers give no validators: what is unchanged is known by its content."""
    rng = random.Random(3)
    into = tmp_path / "crawl"
    store = {"checkpoint_s": 0.2}
    with small_site(200) as site:
        assert crawl(into, settings(tmp_path, store=store), site.url).status == 0
        for page in range(0, 200, 10):
            site.answers[f"/p{page}"] = (200, {"Content-Type": "text/html"}, b"another text")
        site.asked.clear()
        config = settings(tmp_path, politeness={"host_delay_s": 0.05}, store=store)
        begun = crawl(into, config, "--again", "--for", "2s")
        assert begun.summary["ending"] == "time" and begun.summary["again"]["number"] == 1
        kills = sum(crawl_killed(into, config, 0.8 + rng.random(), "--again") for _ in range(5))
        assert kills >= 3
        config = settings(tmp_path, store=store)
        run = crawl(into, config, "--again") if not fyke("status", str(into)).stdout.count("finished") else None
    assert run is None or run.status == 0
    visits = outcomes(into)
    assert {len(of) for of in visits.values()} == {2}
    found = json.loads(fyke("status", str(into), "--json").stdout)["again"]
    assert (found["number"], found["unchanged"], found["changed"], found["new"]) == (1, 181, 19, 0)
    assert site.asked.total() <= 200 + 40 * (kills + 2)  # only what no checkpoint held came again
    assert fyke("check", str(into)).returncode == 0
    assert sum(kind == "revisit" for kind, _ in records(into)) == 181 + 18, "and what the changed pages have in common"
    assert_mended_as_it_was(into)


def test_a_pass_of_few_visits_goes_where_pages_change(tmp_path: Path) -> None:
    into, config = tmp_path / "crawl", settings(tmp_path)
    with small_site(40) as site:
        assert crawl(into, config, site.url).status == 0
        for page in range(20, 25):
            site.answers[f"/p{page}"] = lambda: (200, {"Content-Type": "text/html"}, f"{site.asked.total()}".encode())
        for expected in (5, 5):
            run = crawl(into, config, "--again")
            assert (run.summary["again"]["changed"], run.summary["again"]["unchanged"]) == (expected, 40 - expected)
        site.asked.clear()
        time.sleep(5)  # so that all copies are of about one age: a pass here takes a second
        run = crawl(into, config, "--again", "--visits", "8")
        assert run.status == 0, run.errors
        assert (run.summary["again"]["changed"], run.summary["again"]["unchanged"]) == (5, 3)
        assert site.asked.total() <= 8 + 1
        run = crawl(into, config, "--again")  # nobody was lost
        assert (run.summary["again"]["changed"], run.summary["again"]["unchanged"]) == (5, 35)
    refused = crawl(into, config, "--visits", "8")
    assert refused.status == 2 and "give --again too" in refused.errors


def test_a_pass_asks_for_a_crawl(tmp_path: Path) -> None:
    run = crawl(tmp_path / "none", settings(tmp_path), "http://127.0.0.1:1/", "--again")
    assert run.status == 2 and "holds no crawl yet" in run.errors
    assert not (tmp_path / "none").exists()


def test_a_page_that_is_still_empty_is_no_change(tmp_path: Path) -> None:
    into, config = tmp_path / "crawl", settings(tmp_path)
    with small_site(3) as site:
        site.answers["/p2"] = (200, {"Content-Type": "text/html"}, b"")
        assert crawl(into, config, site.url).status == 0
        for changed in (0, 0, 1, 1, 0):  # it is empty, empty, written, empty again, empty
            body = b"<p>words" if (changed, site.answers["/p2"][2]) == (1, b"") else b""
            site.answers["/p2"] = (200, {"Content-Type": "text/html"}, body)
            found = crawl(into, config, "--again").summary["again"]
            assert (found["unchanged"], found["changed"]) == (3 - changed, changed)
    assert fyke("check", str(into)).returncode == 0


def test_a_token_is_no_change(tmp_path: Path) -> None:
    """The new bytes are archived; for the summary, for exports and for what is believed the page is as it was."""
    into, config = tmp_path / "crawl", settings(tmp_path)
    with small_site(3) as site:
        for name in ("/p1", "/p2"):
            said = "" if name == "/p1" else "{0}"
            site.answers[name] = partial(token_page, site, name, said)
        assert crawl(into, config, site.url).status == 0
        between = datetime.now(UTC).isoformat()
        for _ in range(2):
            found = crawl(into, config, "--again").summary["again"]
            assert (found["unchanged"], found["changed"]) == (2, 1)
    assert outcomes(into) == {"": ["ok", "unchanged", "unchanged"], "p1": ["ok"] * 3, "p2": ["ok"] * 3}
    assert "its content changed never" in fyke("why", str(into), f"{site.url}p1").stdout
    (held,) = [line for line in fyke("why", str(into), site.url).stdout.splitlines() if "text/html" in line]
    assert "text/html, " in held and "link" not in held  # of what is unchanged they are not read again
    out = tmp_path / "changes.csv"
    run = fyke("export", str(into), "--to", "csv", "--changes", "--since", between, "--out", str(out))
    assert run.returncode == 0, run.stderr
    assert [row["url"][-2:] for row in csv.DictReader(out.read_text().splitlines())] == ["p2"]


def test_a_page_that_changes_back_has_changed(tmp_path: Path) -> None:
    """For the summary, the table, exports and search, though its links are known and not read again."""
    into, config = tmp_path / "crawl", settings(tmp_path)
    with small_site(2) as site:
        for word, said in (("first", "new"), ("second", "changed"), ("first", "changed")):
            site.answers["/p1"] = 200, {"Content-Type": "text/html"}, f"<p>{word}</p><a href=/>up</a>".encode()
            between = datetime.now(UTC).isoformat()
            found = crawl(into, config, site.url, *(() if said == "new" else ["--again"])).summary
            assert said == "new" or found["again"][said] == 1
    rows = read_table(into, "pages", ["url", "outcome", "duplicate", "fingerprint"]).to_pylist()
    first, second, third = (row for row in rows if row["url"].endswith("p1"))
    assert {row["outcome"] for row in (first, second, third)} == {"ok"}
    assert [row["duplicate"] for row in (first, second, third)] == [False, False, True]
    assert first["fingerprint"] == third["fingerprint"] != second["fingerprint"]
    out = tmp_path / "changes.csv"
    assert fyke("export", str(into), "--to", "csv", "--changes", "--since", between, "--out", str(out)).returncode == 0
    assert [row["url"][-2:] for row in csv.DictReader(out.read_text().splitlines())] == ["p1"]
    assert fyke("index", str(into)).returncode == 0
    assert "p1" in fyke("search", str(into), "first").stdout and "p1" not in fyke("search", str(into), "second").stdout


def token_page(site: SmallSite, name: str, said: str) -> Answer:
    count = site.asked[name]
    body = f"<title>one</title><p>text {said.format(count)}</p><input type=hidden value={count}>"
    return 200, {"Content-Type": "text/html"}, body.encode()
