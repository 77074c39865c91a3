"""Pages whose bodies never come whole: what came is kept, and what it links to is found."""

import gzip
import json
import random
import re
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawl.runs import begin, crawl, fyke, settings
from crawl.runs import fyke_here as asked_of
from fyke.archive.reading import read_table
from serve.kit import client
from web_server import Answer, web_server

HTML = {"Content-Type": "text/html"}
LEAVES = 30
PAGES = 40
TRIES = 3
POLITENESS = {"failure_delay_s": 0.01, "max_sleep_s": 0.04, "tries": TRIES, "host_failures": 5}
LINK = re.compile(rb'<a href="(/leaf/[0-9-]+)">')


def body_of(page: int) -> bytes:
    """A page with `LEAVES` links that stand nowhere else, between words that do not pack well."""
    dice = random.Random(page)
    links = (f'<p>{dice.randbytes(20).hex()} <a href="/leaf/{page}-{leaf}">leaf</a>' for leaf in range(LEAVES))
    return f"<!doctype html><title>broken page {page}</title>{''.join(links)}</html>".encode()


def chunked(body: bytes) -> bytes:
    return b"".join(
        b"%x\r\n%b\r\n" % (len(body[at : at + 100]), body[at : at + 100]) for at in range(0, len(body), 100)
    )


def packed(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


def unpacked(body: bytes) -> bytes:
    return zlib.decompressobj(31).decompress(body)


def unchunked(body: bytes) -> bytes:
    found = b""
    while b"\r\n" in body:
        size, _, body = body.partition(b"\r\n")
        found, body = found + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return found


Coding = tuple[Mapping[str, str], Callable[[bytes], bytes], Callable[[bytes], bytes]]  # fields, written, read
CODINGS: list[Coding] = [
    ({"Content-Length": "100000"}, bytes, bytes),
    ({"Content-Length": "100000", "Content-Encoding": "gzip"}, packed, unpacked),
    ({"Transfer-Encoding": "chunked"}, chunked, unchunked),
    (
        {"Transfer-Encoding": "chunked", "Content-Encoding": "gzip"},
        lambda body: chunked(packed(body)),
        lambda body: unpacked(unchunked(body)),
    ),
]


def beginning(page: int) -> tuple[Mapping[str, str], bytes, bytes]:
    """Fields of a page that breaks off, what is sent of its body, and the text in that."""
    fields, write, read = CODINGS[page % len(CODINGS)]
    whole = write(body_of(page))
    sent = whole[: random.Random(-page).randrange(1, len(whole))]
    return fields, sent, read(sent)


class BreakingSite:
    """Links to pages that break off, and to leaves that do not. When `mended`, all are whole."""

    def __init__(self) -> None:
        self.mended = False
        self.asked: Counter[str] = Counter()
        self.conditions: list[str] = []
        self.more = threading.Condition()
        self.url = ""

    def answer(self, path: str, header: dict[str, str]) -> Answer:
        with self.more:
            self.asked[path] += 1
            self.more.notify_all()
        if path.startswith("/broken/"):
            self.conditions += [path for name in ("if-none-match", "if-modified-since") if name in header]
            page, validators = int(path[8:]), {"ETag": f'"{path}"', "Last-Modified": "Sat, 01 Jan 2022 00:00:00 GMT"}
            if self.mended:
                return 200, HTML | validators, body_of(page)
            fields, sent, _ = beginning(page)
            return 200, {**HTML, **validators, **fields, "Connection": "close"}, sent
        if path == "/":
            return 200, HTML, "".join(f'<a href="/broken/{page}">b</a>' for page in range(PAGES)).encode()
        return (200, HTML, f"<title>{path}</title>".encode()) if path.startswith("/leaf/") else (404, HTML, b"")

    def wait_until_asked(self, times: int) -> None:
        with self.more:
            assert self.more.wait_for(lambda: self.asked.total() >= times, 60)


@contextmanager
def breaking_site() -> Iterator[BreakingSite]:
    site = BreakingSite()
    with web_server(site.answer) as site.url:
        yield site


def leaves(pages: range = range(PAGES)) -> dict[int, list[str]]:
    """The links in what came of each page."""
    return {page: [path.decode() for path in LINK.findall(beginning(page)[2])] for page in pages}


def records_of_broken(into: Path, site: str, word: str, pages: Iterable[int] = range(PAGES)) -> dict[str, bytes]:
    """The bodies of the records of `pages` that did not come whole, one of each, truncated for this reason."""
    names = {f"broken/{page}" for page in pages}
    kept: dict[str, bytes] = {}
    for path in sorted((into / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                url = record.rec_headers.get_header("WARC-Target-URI", "").removeprefix(site)
                if record.rec_type == "response" and url in names:
                    assert record.rec_headers["WARC-Truncated"] == word
                    assert url not in kept
                    kept[url] = record.raw_stream.read()
    return kept


def assert_kept(into: Path, site: BreakingSite) -> None:
    """Each page has one row and one record, with what came of it; all its links are known, and were followed."""
    rows = {row["url"].removeprefix(site.url): row for row in read_table(into, "pages").to_pylist()}
    found = leaves()
    assert sum(map(len, found.values())) > PAGES
    kept = records_of_broken(into, site.url, "disconnect")
    for page, links in found.items():
        row = rows.pop(f"broken/{page}")
        assert (row["outcome"], row["status"], row["links"]) == ("incomplete", 200, len(links)), row
        assert kept[f"broken/{page}"] == beginning(page)[1]
        assert site.asked[f"/broken/{page}"] >= TRIES
        assert not row["duplicate"] and row["fingerprint"] == 0
    expected = {link[1:] for links in found.values() for link in links}
    assert {url for url, row in rows.items() if row["outcome"] == "ok"} == {"", *expected}
    checked = fyke("check", str(into))
    assert checked.returncode == 0, checked.stdout


def test_what_came_of_a_page_is_kept_and_its_links_are_followed(tmp_path: Path) -> None:
    """On a host whose every page but the first breaks off, in any coding, at any place; and asked as often as ever."""
    with breaking_site() as site:
        into, config = tmp_path / "there", settings(tmp_path, politeness=POLITENESS)
        run = crawl(into, config, site.url)
        assert run.status == 0 and run.summary["ending"] == "finished", run.errors
        assert f"{PAGES}  incomplete" in run.errors
        assert_kept(into, site)
        assert {site.asked[f"/broken/{page}"] for page in range(PAGES)} == {TRIES}
        said = asked_of("why", str(into), f"{site.url}broken/1").stdout
        assert "incomplete" in said and "archived in" in said, said
        assert asked_of("index", str(into)).returncode == 0
        found = json.loads(asked_of("search", str(into), "broken page", "--json", "--limit", "100").stdout)
        assert {hit["url"] for hit in found["hits"]} <= {f"{site.url}broken/{page}" for page in range(PAGES)}
        assert found["hits"]
        with client(into) as asking:
            for page in range(len(CODINGS)):
                shown = asking.get("/copy", params={"url": f"{site.url}broken/{page}"})
                assert shown.status_code == 200, shown.text


NONSENSE = b"no number\r\n"  # where the size of a chunk should be
ENDINGS = {  # what is sent of a page in the end, behind that; WARC's word; how often it is asked for again
    "rests": (lambda page: beginning(page)[1], b"", "time", 1),
    "nonsense": (lambda page: chunked(packed(body_of(page)) if page % 2 else body_of(page)), NONSENSE, "disconnect", 0),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_came_before_a_body_rests_or_follows_no_protocol_is_kept(ending: str, tmp_path: Path) -> None:
    """In any coding; and its links are followed."""
    sent_of, more, word, again = ENDINGS[ending]
    pages = range(len(CODINGS)) if ending == "rests" else range(2, 4)  # chunks have codings of their own
    texts = {page: CODINGS[page][2](sent_of(page)) for page in pages}

    def answer(path: str, _: dict[str, str]) -> Answer:
        if path.startswith("/broken/"):
            return 200, HTML | CODINGS[int(path[8:])][0], sent_of(int(path[8:])) + more
        if path == "/":
            return 200, HTML, "".join(f'<a href="/broken/{page}">b</a>' for page in pages).encode()
        return (200, HTML, b"a leaf") if path.startswith("/leaf/") else (404, HTML, b"")

    with web_server(answer) as url:
        into = tmp_path / "there"
        config = settings(tmp_path, politeness={**POLITENESS, "tries": 2}, fetch={"timeout_s": 1.0})
        run = crawl(into, config, url)
        assert run.status == 0 and f"{len(pages)}  incomplete" in run.errors, run.errors
    rows = {row["url"].removeprefix(url): row for row in read_table(into, "pages").to_pylist()}
    kept = records_of_broken(into, url, word)
    for page in pages:
        links = LINK.findall(texts[page])
        assert links, "the law says nothing"
        row = rows[f"broken/{page}"]
        assert (row["outcome"], row["status"], row["links"]) == ("incomplete", 200, len(links)), row
        assert row["detail"] and row["tries"] == again
        assert kept[f"broken/{page}"].startswith(sent_of(page))
        assert {link.decode()[1:] for link in links} <= rows.keys()
    assert fyke("check", str(into)).returncode == 0


def test_the_next_pass_asks_for_it_as_new(tmp_path: Path) -> None:
    """No ETag of a page that broke off says that it is unchanged, nor do its bytes."""
    with breaking_site() as site:
        into, config = tmp_path / "there", settings(tmp_path, politeness=POLITENESS)
        assert crawl(into, config, site.url).status == 0
        assert crawl(into, config, "--again").status == 0
        assert not site.conditions
        words = [row["outcome"] for row in read_table(into, "pages").to_pylist() if "/broken/" in row["url"]]
        assert words == ["incomplete"] * 2 * PAGES
        site.mended = True
        assert crawl(into, config, "--again").status == 0
        assert not site.conditions
        rows = [row for row in read_table(into, "pages").to_pylist() if "/broken/" in row["url"]][2 * PAGES :]
        assert [(row["outcome"], row["links"]) for row in rows] == [("ok", LEAVES)] * PAGES
        assert crawl(into, config, "--again").status == 0
        assert len(site.conditions) == PAGES
        assert fyke("check", str(into)).returncode == 0


@pytest.mark.parametrize("agents", [1, 2])
def test_a_kill_between_tries_loses_nothing(agents: int, tmp_path: Path) -> None:
    with breaking_site() as site:
        into = tmp_path / "there"
        config = settings(tmp_path, politeness=POLITENESS, store={"checkpoint_s": 0.1})
        arguments = [site.url, "--agents", str(agents)]
        process = begin(into, config, *arguments, start_new_session=True)
        with process:
            site.wait_until_asked(PAGES)
            process.kill()
        run = crawl(into, config, *arguments)
        assert run.status == 0, run.errors
        assert_kept(into, site)


ENDS = {
    (200, ""): "incomplete",
    (203, ""): "incomplete",
    (300, ""): "incomplete",
    (302, "/leaf/1-1"): "redirected",
    (404, ""): "client_error",
    (410, ""): "client_error",
    (500, ""): "server_error",
    (503, ""): "throttled",
    (305, "/leaf/1-1"): "broken_off",  # as if whole, it is not taken
}


def test_the_head_says_what_becomes_of_an_answer_that_breaks_off(tmp_path: Path) -> None:
    """A redirect is followed, an error is one, and the body of an error is not read; each is archived as truncated. An
    answer without a byte of a body is not."""

    def answer(path: str, _: dict[str, str]) -> Answer:
        if path == "/":
            return 200, HTML, "".join(f'<a href="/{at}">x</a>' for at in range(2 * len(ENDS))).encode()
        if path == "/robots.txt" or path.startswith("/leaf"):
            return 404, {}, b""
        at = int(path[1:])
        status, target = list(ENDS)[at // 2]
        fields = {"Location": target} if target else {}
        body = b"" if at % 2 else b'<a href="/leaf/%d">x</a>' % status
        return status, {**HTML, **fields, "Content-Length": "1000", "Connection": "close"}, body

    with web_server(answer) as url:
        into, config = tmp_path / "there", settings(tmp_path, politeness={**POLITENESS, "host_failures": 1000})
        run = crawl(into, config, url)
        assert run.status == 0, run.errors
    rows = {row["url"].removeprefix(url): row for row in read_table(into, "pages").to_pylist()}
    for at, ((status, _), outcome) in enumerate(ENDS.items()):
        assert (rows[f"{2 * at}"]["outcome"], rows[f"{2 * at}"]["status"]) == (outcome, status)
        assert bool(rows[f"{2 * at}"]["warc_file"]) is (outcome != "broken_off")
        assert rows[f"{2 * at}"]["detail"]
        empty = outcome if outcome in ("redirected", "throttled") else "broken_off"
        assert rows[f"{2 * at + 1}"]["outcome"] == empty
    followed = {f"leaf/{status}" for (status, _), outcome in ENDS.items() if outcome == "incomplete"}
    assert {path for path in rows if path.startswith("leaf/")} == followed | {"leaf/1-1"}
    assert fyke("check", str(into)).returncode == 0


LAST = {  # what the last try brings, and the outcome
    "nothing": "incomplete",
    "less": "incomplete",
    "all": "ok",
    "missing": "client_error",
    "an error": "server_error",
}


def test_if_the_last_try_brings_nothing_the_newest_beginning_is_kept(tmp_path: Path) -> None:
    """Whatever the server says at last is believed."""
    asked: Counter[str] = Counter()
    last = {f"/broken/{page}": random.Random(page).choice(list(LAST)) for page in range(PAGES)}

    def answer(path: str, _: dict[str, str]) -> Answer:
        asked[path] += 1
        if path not in last:
            return 200, HTML, "".join(f'<a href="{to}">b</a>' for to in last if path == "/").encode()
        fields, sent, _ = beginning(int(path[8:]))
        if asked[path] < TRIES - 1 or (asked[path] >= TRIES and last[path] == "less"):
            sent = sent[: (len(sent) + 1) // 2]
        elif asked[path] >= TRIES and last[path] == "nothing":
            raise OSError  # no byte is sent
        elif asked[path] >= TRIES and last[path] != "all":
            return 404 if last[path] == "missing" else 500, HTML, b"no"
        elif asked[path] >= TRIES:
            return 200, HTML, body_of(int(path[8:]))
        return 200, {**HTML, **fields, "Connection": "close"}, sent

    into = tmp_path / "there"
    with web_server(answer) as url:
        run = crawl(into, settings(tmp_path, politeness=POLITENESS), url)
    assert run.status == 0 and run.summary["ending"] == "finished", run.errors
    rows = {f"/{row['url'].removeprefix(url)}": row for row in read_table(into, "pages").to_pylist()}
    kept = records_of_broken(
        into, url, "disconnect", (int(path[8:]) for path in last if LAST[last[path]] == "incomplete")
    )
    for path, said in last.items():
        assert rows[path]["outcome"] == LAST[said] and asked[path] >= TRIES, rows[path]
        sent = beginning(int(path[8:]))[1]
        if said in ("nothing", "less"):
            assert kept[path[1:]] == (sent if said == "nothing" else sent[: (len(sent) + 1) // 2])
        assert ("the last try brought nothing: broken_off" in rows[path]["detail"]) is (said == "nothing")
    assert fyke("check", str(into)).returncode == 0
