"""A pass asks for pages by conditions, and no condition hides what a page is."""

import threading
import time
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from crawl.runs import crawl_here as crawl
from crawl.runs import fyke_here, settings
from crawl.test_again import assert_mended_as_it_was
from fyke.archive.reading import read_table
from web_server import Answer, web_server

HTML = {"Content-Type": "text/html"}
PAGES = 30
DELAY_S = 0.04
CONDITIONS = "if-none-match", "if-modified-since"
VALIDATORS = {"ETag": '"{0}"'}, {"Last-Modified": "Sat, 01 Jan 2022 00:00:00 GMT"}
NOW = {  # what a page is at the second visit, and what becomes of it
    "as it was": "unchanged",
    "other": "ok",
    "missing": "client_error",
    "moved": "redirected",
    "refused": "client_error",  # with 412, whatever is asked
}


class RefusingSite:
    """Pages that change after the first crawl; many answer each request with a condition with 412."""

    def __init__(self, seed: int) -> None:
        dice = Random(seed)
        self.now = {f"/p{page}": dice.choice(list(NOW)) for page in range(PAGES)}
        self.validators = {path: dice.choice(VALIDATORS) for path in self.now}
        self.refuses = {path for path in self.now if dice.random() < 0.7}
        self.asks_for_rest = dice.choice(sorted(self.refuses))
        self.changed = False
        self.asked: list[tuple[float, str, bool]] = []  # when, what, whether by a condition
        self._lock = threading.Lock()

    def answer(self, path: str, header: dict[str, str]) -> Answer:
        condition = any(name in header for name in CONDITIONS)
        with self._lock:
            self.asked.append((time.monotonic(), path, condition))
        if path == "/":
            return 200, HTML, "".join(f'<a href="{to}">to</a>' for to in self.now).encode()
        if path not in self.now:
            return 404, HTML, b""
        if condition and path in self.refuses:
            return 412, {**HTML, **({"Retry-After": "1"} if path == self.asks_for_rest else {})}, b"no"
        now = self.now[path] if self.changed else "as it was"
        fields = {name: value.format(path) for name, value in self.validators[path].items()}
        return {
            "as it was": (304, fields, b"") if condition else (200, HTML | fields, f"<p>{path}</p>".encode()),
            "other": (200, HTML | fields, f"<p>{path} is another</p>".encode()),
            "missing": (404, HTML, b"no"),
            "moved": (301, {"Location": "/"}, b""),
            "refused": (412, HTML, b"no"),
        }[now]


@pytest.mark.parametrize("tries", [1, 3])
def test_a_page_that_refuses_conditions_is_asked_once_more_without(tmp_path: Path, tries: int) -> None:
    """After the rest of its host, and after the rest that the refusal asks for; then it is what it is. Two passes."""
    politeness = {"host_delay_s": DELAY_S, "tries": tries}
    into, config, site = tmp_path / "crawl", settings(tmp_path, politeness=politeness), RefusingSite(tries)
    with web_server(site.answer) as url:
        assert crawl(into, config, url).status == 0
        site.changed = True
        for _ in range(2):
            site.asked.clear()
            run = crawl(into, config, "--again")
            assert run.status == 0 and run.summary["ending"] == "finished", run.errors
            rows = read_table(into, "pages", ["url", "outcome", "status"]).to_pylist()
            last = {f"/{row['url'].removeprefix(url)}": row for row in rows}
            for path, now in site.now.items():
                asked = [condition for _, one, condition in site.asked if one == path]
                refused = path in site.refuses or now == "refused"
                assert asked in ([True, False], [False]) if refused else asked in ([True], [False]), path
                assert_is(last[path], now, by_condition=asked[-1])
            times = [at for at, *_ in site.asked]
            assert min(after - before for before, after in pairwise(times)) > DELAY_S / 2
            for (at, path, condition), (after, *_) in pairwise(site.asked):
                assert after - at > 0.9 or not (condition and path == site.asks_for_rest)
    assert fyke_here("check", str(into)).returncode == 0


def assert_is(row: dict[str, object], now: str, *, by_condition: bool) -> None:
    """A page that came whole, with the bytes of the visit before, is `ok`, as it is without validators."""
    means = {NOW[now], "unchanged"} if now == "other" else {NOW[now]}
    if now in ("missing", "refused"):
        assert row["status"] == (404 if now == "missing" else 412)
        means |= {"gone"} if now == "missing" else set()
    assert row["outcome"] in means, (row, now, by_condition)


RELS = "canonical", "alternate", "next", "prev nofollow", "stylesheet", "preload", "search", "https://api.w.org/", ""


def said_of_links(dice: Random, place: str) -> dict[str, str]:
    """What the head of an answer may say of links, each to a page of its own in `place`."""
    links = [f'<{place}-{number}>; rel="{dice.choice(RELS)}"' for number in range(dice.randrange(6))]
    return {
        **({"Link": ", ".join(links)} if links else {}),
        **({"Refresh": f"0; url={place}-refresh"} if dice.random() < 0.2 else {}),
        **({"X-Robots-Tag": dice.choice(["nofollow", "noindex", "none"])} if dice.random() < 0.3 else {}),
        **({"Location": f"{place}-location"} if dice.random() < 0.2 else {}),
    }


@pytest.mark.parametrize("arguments", [(), ("--requisites",)])
def test_new_links_in_the_head_of_a_304_are_followed_as_those_of_a_200(tmp_path: Path, arguments: tuple[str]) -> None:
    """Also in passes after that, if they are new again. In the table of links are those of answers with a body."""
    into, config, now, asked = tmp_path / "crawl", settings(tmp_path), [0], set[str]()
    names = [f"/{how}/{number}" for how in ("by", "whole") for number in range(PAGES)]

    def answer(path: str, header: dict[str, str]) -> Answer:
        asked.add(path)
        _, how, number = path.split("/") if path.count("/") == 2 else ("", "", path[1:])
        if how not in ("by", "whole") or not number.isdigit():
            return 200, HTML, b"".join(b"<a href=%b>to</a>" % name.encode() for name in names if path == "/")
        tag = f"{path}-{now[0]}"
        fields = HTML | {"ETag": '"it"'} | (said_of_links(Random(f"{number}-{now[0]}"), tag) if now[0] else {})
        if how == "by" and CONDITIONS[0] in header:
            return 304, fields, b""
        return 200, fields, f"<title>{path}</title><p>{now[0] if how == 'whole' else ''}".encode()

    with web_server(answer) as url:
        assert crawl(into, config, url, *arguments).status == 0
        for now[0] in (1, 2):
            before = len(read_table(into, "links"))
            asked.clear()
            assert crawl(into, config, "--again", *arguments).status == 0
            led = {how: {path.split("/")[2] for path in asked if f"{how}/" in path} for how in ("by", "whole")}
            assert led["by"] == led["whole"] and len(led["by"]) > PAGES
            told = read_table(into, "links", ["target_url"]).slice(before).to_pylist()
            assert told and not any("/by/" in row["target_url"] and "-" in row["target_url"] for row in told)
            rows = read_table(into, "pages", ["url", "outcome", "links"]).to_pylist()[-len(asked) :]
            assert {row["links"] for row in rows if row["outcome"] == "unchanged"} == {0}
    assert_mended_as_it_was(into)


CODED = "gzip", "br"


@pytest.mark.parametrize("weak", ["", "W/"])
def test_a_tag_that_names_a_coding_matches_at_a_server_that_compares_it_without(tmp_path: Path, weak: str) -> None:
    """Apache adds the coding to the tag of what it packs, and compares the file's own ("DeflateAlterETag")."""
    into, config, dice = tmp_path / "crawl", settings(tmp_path), Random(weak)
    tags = {f"/p{page}": f"{dice.randbytes(4).hex()}-{dice.choice(['', '-gzip', 'x'])}" for page in range(PAGES)}
    suffix = {path: dice.choice(["", *(f"-{coding}" for coding in CODED)]) for path in tags}
    changed: set[str] = set()

    def answer(path: str, header: dict[str, str]) -> Answer:
        if path not in tags:
            return 200, HTML, b"".join(b"<a href=%b>to</a>" % name.encode() for name in tags if path == "/")
        own = f'"{tags[path]}{"2" if path in changed else ""}"'
        if own in [one.strip().removeprefix("W/") for one in header.get("if-none-match", "").split(",")]:
            return 304, {"ETag": own}, b""
        tag = f'{weak}{own[:-1]}{suffix[path]}"'
        return 200, HTML | {"ETag": tag}, f"<title>{path}</title><p>{path in changed}".encode()

    with web_server(answer) as url:
        assert crawl(into, config, url).status == 0
        changed |= set(dice.sample(sorted(tags), PAGES // 3))
        assert crawl(into, config, "--again").status == 0
    rows = read_table(into, "pages", ["url", "status"]).to_pylist()
    last = {f"/{row['url'].removeprefix(url)}": row["status"] for row in rows}
    assert {path: last[path] for path in tags} == {path: 200 if path in changed else 304 for path in tags}
