"""Seeds from lists: every kind of source gives its URLs, none is lost or made up, and what is wrong is told."""

import fcntl
import gc
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import termios
import tracemalloc
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as settings_of_laws
from hypothesis import strategies as st

from crawl.runs import archived, begin, command, crawl, crawl_here, crawl_killed, fyke, settings, wait_until
from crawl.small_site import SmallSite, small_site
from fyke.archive.directory import CrawlDirectory
from fyke.archive.reading import read_table
from fyke.archive.seed_list import SeedList
from fyke.core.config import load
from fyke.core.errors import ConfigurationError
from fyke.core.urls import SCHEMES
from fyke.crawl import seed_sources
from fyke.crawl.seed_sources import LINE_BYTES, SeedSources

HTML = {"Content-Type": "text/html"}
HOSTS = [f"http://host-{number}.example/" for number in range(3)]


@pytest.fixture
def site():
    with small_site(pages=12) as running:
        yield running


def read(*paths: Path) -> list[str]:
    return [*SeedSources([str(path) for path in paths], SCHEMES)]


def made(folder: Path, data: bytes, name: str = "list") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


LIST = "\ufeff# mine\r\nhttp://a.example/x\r\n\r\n  b.example  # a note\r\nhttps://bücher.example/ä?q=ö\nhttp://a.example:80/#top"
FOUND = [
    "http://a.example/x",
    "http://b.example/",
    "https://xn--bcher-kva.example/%C3%A4?q=%C3%B6",
    "http://a.example/",
]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])])
def test_a_text_as_people_write_it(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Comments, blank lines, CRLF, a byte order mark, international names, hosts alone; gzip in any number of parts."""
    assert read(made(tmp_path, pack(LIST.encode()))) == FOUND


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_text_as_other_systems_write_it(tmp_path: Path, encoding: str, pack: Callable[[bytes], bytes]) -> None:
    """UTF-16 with its mark, lists and sitemaps; without a mark nobody can tell, and it is refused."""
    assert read(made(tmp_path, pack(LIST.encode(encoding)))) == FOUND
    long = "\ufeff" + "".join(f"http://a.example/{number:05}\r\n" for number in range(20_000))
    assert len(read(made(tmp_path, pack(long.encode(encoding))))) == 20_000
    places = "".join(f"<url><loc>{url}</loc></url>" for url in HOSTS)
    sitemap = f'\ufeff<?xml version="1.0" encoding="UTF-16"?><urlset>{places}</urlset>'
    assert read(made(tmp_path, pack(sitemap.encode(encoding)))) == HOSTS
    with pytest.raises(ConfigurationError, match="no URL in it"):
        read(made(tmp_path, pack(LIST[1:].encode(encoding))))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_byte_that_is_no_utf_8_is_sent_as_it_is(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """As browsers send links of pages in Latin-1. In a host it is refused, with the line."""
    lines = b"# caf\xe9\nhttp://a.example/\xe9?q=\xff&r=\xc3\xa4 # \xe9\na.example/caf\xe9\nhttp://caf\xe9.example/\n"
    sources = SeedSources([str(made(tmp_path, pack(lines)))], SCHEMES)
    assert [*sources] == ["http://a.example/%E9?q=%FF&r=%C3%A4", "http://a.example/caf%E9"]
    assert sources.refused == 1 and "line 4: 'http://caf%E9.example/' is not a URL" in sources.complaint


def test_sitemaps_in_latin_1(tmp_path: Path) -> None:
    """Declared or not: a sitemap's text has an encoding, unlike a line of a list."""
    for declared in ("<?xml version='1.0' encoding='iso-8859-1'?>", ""):
        text = f"{declared}<urlset><url><loc>http://a.example/é</loc></url></urlset>"
        assert read(made(tmp_path, text.encode("latin-1"))) == ["http://a.example/%C3%A9"]


def test_a_warning_before_a_sitemap(tmp_path: Path) -> None:
    for before in ("<br />\n<b>Warning</b>: x in <b>/x.php</b><br />\n", "\ufeff\ufeff", "\n\n"):
        text = f"{before}<?xml version='1.0'?><urlset><url><loc>{HOSTS[0]}</loc></url></urlset>"
        assert read(made(tmp_path, text.encode())) == HOSTS[:1]


def test_sitemaps(tmp_path: Path) -> None:
    places = "".join(f"<url><loc>{url}</loc></url>" for url in HOSTS)
    text = f"<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{places}</urlset>"
    assert read(made(tmp_path, text.encode()), made(tmp_path, gzip.compress(text.encode()), "packed")) == HOSTS * 2


@pytest.mark.parametrize("end", ["</urlset>", "</s:urlset\n>", "</urlset>\n<!-- made by hand -->"])
def test_a_sitemap_that_breaks_off_is_refused(tmp_path: Path, end: str) -> None:
    """As one in gzip is: of a list that is taken in part nobody would know."""
    begin = "<s:urlset xmlns:s='x'>" if ":" in end else "<urlset>"
    whole = f"{begin}{''.join(f'<url><loc>{url}</loc></url>' for url in HOSTS)}{end}"
    assert read(made(tmp_path, whole.encode())) == HOSTS
    for cut in range(len(begin), whole.index(end) + len("</urlset")):
        with pytest.raises(ConfigurationError, match=r"breaks off before </urlset>|no URL in it"):
            read(made(tmp_path, whole[:cut].encode()))


def test_a_cdxj_gives_its_pages(tmp_path: Path) -> None:
    captures = [
        ("http://a.example/", "text/html", "200"),
        ("http://a.example/", "text/html", "200"),
        ("http://a.example/x.png", "image/png", "200"),
        ("http://a.example/gone", "text/html", "404"),
        ("http://a.example/b", "application/xhtml+xml", "200"),
    ]
    lines = ['!meta 0 {"a": 1}'] + [
        f"com,example)/ 20260101000000 {json.dumps({'url': url, 'mime': mime, 'status': status})}"
        for url, mime, status in captures
    ]
    assert read(made(tmp_path, "\n".join(lines).encode())) == ["http://a.example/", "http://a.example/b"]


def test_other_crawls(site: SmallSite, tmp_path: Path) -> None:
    """A crawl's directory, its WACZ and its CDXJ index all give the pages that it fetched."""
    there, config = tmp_path / "there", settings(tmp_path)
    site.answers["/p3"] = 404, {}, b""
    assert crawl(there, config, site.url).status == 0
    assert fyke("export", str(there), "--to", "wacz", "--out", str(tmp_path / "x.wacz")).returncode == 0
    pages = sorted(archived(there))
    assert len(pages) == 9
    for source in (there, tmp_path / "x.wacz", *(there / "warc").glob("*.cdxj")):
        assert sorted(read(source)) == pages, source


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def _is_marked_up(data: bytes) -> bool:
    """Whether it begins as XML and HTML do: then it is a sitemap, or refused."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<")


@example(["<", "http://a.example/"])
@given(st.lists(st.one_of(TEXTS, st.sampled_from([*FOUND, "c.example/é", "http://u:p@d.example/"])), max_size=20))
def test_no_line_is_lost_in_silence(lines: list[str]) -> None:
    """Whatever a line holds, it gives its URL, or is counted as none, or was blank or a comment."""
    data = "\n".join(line.replace("\r", "").replace("\n", "") for line in lines).encode()
    sources = SeedSources(["-"], SCHEMES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", type("Stdin", (), {"buffer": io.BufferedReader(io.BytesIO(data))}))
        try:
            found = [*sources]
        except ConfigurationError as error:
            assert "--seeds -: " in str(error)
            assert not {*FOUND} & {line.strip() for line in lines} or _is_marked_up(data)
            return
    assert len(found) <= len(lines)
    assert {*FOUND} & {line.strip() for line in lines} <= {*found}
    assert "u:p@" not in sources.complaint and bool(sources.complaint) == bool(sources.refused)


LONG = ["x" * 70_000, " " * 70_000, "\t" * 70_000, "/" * (LINE_BYTES - 18), "%41" * 90_000, "é" * 40_000]


@pytest.mark.parametrize("end", ["", "\nhttp://b.example/\n"])
@pytest.mark.parametrize("rest", LONG, ids=lambda rest: repr(rest[:3]))
def test_a_line_that_is_too_long_is_no_url(tmp_path: Path, rest: str, end: str) -> None:
    """Nothing is made of its beginning; it is counted and told, in few words."""
    lines = f"http://a.example/\nhttp://a.example/{rest}x{end}"
    sources = SeedSources([str(made(tmp_path, lines.encode()))], SCHEMES)
    assert [*sources] == ["http://a.example/", "http://b.example/"][: 1 + bool(end)]
    assert sources.refused == 1 and ", line 2: 'http://a.example/" in sources.complaint
    assert len(sources.complaint) < 500


def test_a_comment_may_be_long(tmp_path: Path) -> None:
    comment = "# " + "x " * LINE_BYTES
    sources = SeedSources([str(made(tmp_path, f"{comment}\nhttp://a.example/ {comment}".encode()))], SCHEMES)
    assert [*sources] == ["http://a.example/"] and not sources.refused


@pytest.mark.parametrize("before", ["http://a.example/", '{"text": "'])
def test_what_is_no_json_in_a_wacz_is_no_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    """Neither a line of another kind, nor what begins in the midst of one that is too long."""
    monkeypatch.setattr(seed_sources, "PAGE_BYTES", 1000)
    data, line = io.BytesIO(), before + "http://evil.example/".rjust(1020 - len(before), "x") * 2
    with zipfile.ZipFile(data, "w") as bundle:
        bundle.writestr("pages/pages.jsonl", f'{line}\n{{"url": "http://b.example/"}}\n')
    sources = SeedSources([str(made(tmp_path, data.getvalue()))], SCHEMES)
    assert [*sources] == ["http://b.example/"] and sources.refused == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.just("url"),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3) | st.just("url"), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4), st.dictionaries(st.text(max_size=3), JSON, max_size=4))
@settings_of_laws(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_of_a_long_page_in_a_wacz_the_url_is_read(
    monkeypatch: pytest.MonkeyPatch, before: dict[str, object], after: dict[str, object]
) -> None:
    """The same as of a short one, whatever stands beside it."""
    after.pop("url", None)
    page = {**before, "url": 'http://a.example/"é', **after}
    monkeypatch.setattr(seed_sources, "PARSED_BYTES", 0)
    for letters in (True, False):
        line = json.dumps(page, ensure_ascii=letters).encode("utf-8", "surrogatepass")
        assert seed_sources._url_of(line) == page["url"]
        with pytest.raises(ValueError):
            seed_sources._url_of(line[:-1])


@pytest.mark.parametrize("rest", [b"[]" + b",[]" * (1 << 22), b"1" + b",1" * (1 << 22), b'{"a":[' * (1 << 20)])
def test_a_page_of_a_wacz_takes_little_more_memory_than_it_has_bytes(rest: bytes) -> None:
    page = b'{"url":"http://a.example/","text":[' + rest + b"]}"
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    tracemalloc.start()
    try:
        with suppress(ValueError):  # that it is nested too deeply
            assert seed_sources._url_of(page) == "http://a.example/"
        peak = tracemalloc.get_traced_memory()[1] + counted.max_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)
    assert peak < 2 * len(page)


def test_a_wacz_with_very_many_names_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before zipfile has made a record of each."""
    monkeypatch.setattr(seed_sources, "NAMES_BYTES", 1 << 16)
    for files, refused in ((100, False), (2000, True)):
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as bundle:
            bundle.writestr("pages/pages.jsonl", b'{"url": "http://b.example/"}\n' * 10_000)
            for number in range(files):
                bundle.writestr(f"archive/{number}", b"")
        path = made(tmp_path, data.getvalue())
        if refused:
            with pytest.raises(ConfigurationError, match="list of files is longer than"):
                read(path)
        else:
            assert read(path) == ["http://b.example/"]


# -- by the command ----------------------------------------------------------------------------------


def test_from_a_file_and_from_a_pipe(site: SmallSite, tmp_path: Path) -> None:
    """What is no URL is told in one line and costs nothing; the list is kept, and resumed without being named."""
    config = settings(tmp_path, dns={"private": ["127.0.0.1"]})
    lines = f"{site.url}p5\nhttp://me:hunter2@x.example/\n{site.url}p6  # last\nnot a url\n"
    list_ = made(tmp_path, lines.encode())
    run = crawl(tmp_path / "a", config, "--seeds", str(list_), "--depth", "1")
    assert run.status == 0
    (line,) = [line for line in run.errors.splitlines() if "seeds" in line]
    assert line.startswith("fyke: of the seeds, 2 entries are not URLs and were left out; the first: ")
    assert "line 2" in line and "hunter2" not in line
    expected = [f"{site.url}p{number}" for number in (11, 5, 6)]
    assert sorted(archived(tmp_path / "a")) == expected
    assert (tmp_path / "a" / "seeds.txt").read_text().splitlines() == [f"{site.url}p5", f"{site.url}p6"]
    assert {row["kind"] for row in read_table(tmp_path / "a", "pages").to_pylist()} == {"seed", "page"}
    assert not [path for path in (tmp_path / "a").rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]
    assert "finished before" in fyke("crawl", "--into", str(tmp_path / "a")).stderr
    done = subprocess.run(
        command(tmp_path / "b", config, "--seeds", "-", "--depth", "1"),
        input=lines, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and sorted(archived(tmp_path / "b")) == expected
    answer = fyke("why", str(tmp_path / "b"), f"{site.url}p5")
    assert answer.returncode == 0 and "fetched" in answer.stdout


def test_another_list_is_another_crawl(site: SmallSite, tmp_path: Path) -> None:
    config = settings(tmp_path, dns={"private": ["127.0.0.1"]})
    list_ = made(tmp_path, f"{site.url}p5\n{site.url}p6\n".encode())
    assert crawl(tmp_path / "a", config, "--seeds", str(list_), "--pages", "1").status == 0
    made(tmp_path, f"{site.url}p5\n{site.url}p7\n".encode())
    run = crawl(tmp_path / "a", config, "--seeds", str(list_))
    assert run.status == 3 and run.errors.count("\n") == 1
    assert "another list of seeds" in run.errors and "(seed 2 is" in run.errors
    made(tmp_path, f"{site.url}p5\n{site.url}p6\n".encode())
    assert crawl(tmp_path / "a", config, "--seeds", str(list_), "--pages", "99").status == 0
    assert {f"{site.url}p5", f"{site.url}p6"} <= {*archived(tmp_path / "a")}


def test_where_a_seed_of_a_list_redirects_to_is_in_scope(tmp_path: Path) -> None:
    """As with a seed on the command line; at another address, which a list must have named to be fetched."""
    with small_site(pages=4) as site, small_site(pages=4, host="127.0.0.2") as other:
        site.answers["/p1"] = 301, {"Location": f"{other.url}p1"}, b""
        list_ = made(tmp_path, f"{site.url}p1\n".encode())
        config = settings(tmp_path, dns={"private": ["127.0.0.1", "127.0.0.2"]})
        assert crawl(tmp_path / "a", config, "--seeds", str(list_)).status == 0
        assert sorted(archived(tmp_path / "a")) == [f"{other.url}p1", f"{other.url}p3"]


def test_the_seeds_alone(site: SmallSite, tmp_path: Path) -> None:
    """And what they redirect to: nothing that they link to."""
    site.answers["/p1"] = 301, {"Location": f"{site.url}p4"}, b""
    list_ = made(tmp_path, f"{site.url}p1\n{site.url}p2\n".encode())
    config = settings(tmp_path, dns={"private": ["127.0.0.1"]})
    assert crawl(tmp_path / "a", config, "--seeds", str(list_), "--scope", "seeds").status == 0
    assert sorted(archived(tmp_path / "a")) == [f"{site.url}p2", f"{site.url}p4"]


@pytest.mark.parametrize("scope", ["prefix", "host", "domain"])
def test_killed_and_resumed(tmp_path: Path, scope: str) -> None:
    """Nothing of a list is lost, and its scope holds after a restart."""
    with small_site(pages=300) as site:
        wanted = [f"{site.url}p{number}" for number in range(100, 300)]
        sections = {"dns": {"private": ["127.0.0.1"]}, "store": {"checkpoint_s": 0.2}}
        slow = settings(tmp_path, politeness={"host_delay_s": 0.05}, **sections)
        list_ = made(tmp_path, "".join(f"{url}\n" for url in wanted).encode())
        for after_s in (1.5, 2.5, 3.5):
            assert crawl_killed(tmp_path / "a", slow, after_s, "--seeds", str(list_), "--scope", scope)
        config = settings(tmp_path, **sections)
        assert crawl(tmp_path / "a", config, "--seeds", str(list_), "--scope", scope).status == 0
        assert sorted(archived(tmp_path / "a")) == sorted(wanted)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", ["no URL in it"]),
        (b"# nothing\n\n", ["no URL in it"]),
        (b"one two\n", ["no URL in it", "line 1", "'one two'"]),
        (b"\x1f\x8b\x08nonsense", ["cannot be read"]),
        (b"PK\x03\x04nonsense", ["cannot be read"]),
        (b"<html><p>hello</html>", ["not a sitemap", "'html'"]),
        (b"x" * 200_000, ["no URL in it", "line 1"]),
    ],
)
def test_a_list_that_is_none(tmp_path: Path, data: bytes, words: list[str]) -> None:
    run = crawl(tmp_path / "a", settings(tmp_path), "--seeds", str(made(tmp_path, data)))
    assert run.status == 2 and run.errors.count("\n") == 1, run.errors
    assert all(word in run.errors for word in words) and len(run.errors) < 700
    assert not (tmp_path / "a" / "fyke.toml").exists()
    with small_site(pages=1) as site:  # the same folder can be used
        assert crawl(tmp_path / "a", settings(tmp_path), site.url).status == 0


ENTRY = b'{"url": "http://a.example/"}\n' * 100
IN_HEADER, IN_DIRECTORY = 4, 6  # where the version begins in each, of what a ZIP file says twice


def zipped(compression: int, version: int, flags: int, method: int) -> bytes:
    """A WACZ whose list of pages says that it is packed otherwise than it is."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as bundle:
        bundle.writestr("pages/pages.jsonl", ENTRY)
    changed = bytearray(data.getvalue())
    for place in (IN_HEADER, changed.rindex(b"PK\x01\x02") + IN_DIRECTORY):
        changed[place : place + 6] = b"".join(number.to_bytes(2, "little") for number in (version, flags, method))
    return bytes(changed)


@given(
    st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]),
    st.integers(0, 99),
    st.integers(0, (1 << 16) - 1),
    st.sampled_from([*range(20), 93, 95, 99, 65_535]),
)
@example(zipfile.ZIP_STORED, 20, 1, 0)  # with a password
@example(zipfile.ZIP_STORED, 99, 0, 0)
@example(zipfile.ZIP_STORED, 20, 0, 99)
@example(zipfile.ZIP_DEFLATED, 63, 0, 14)
@settings_of_laws(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_wacz_that_is_packed_strangely_is_read_or_refused(
    tmp_path: Path, compression: int, version: int, flags: int, method: int
) -> None:
    path = made(tmp_path, zipped(compression, version, flags, method))
    try:
        assert read(path) == ["http://a.example/"]
    except ConfigurationError as error:
        assert f"--seeds {path} cannot be read: " in str(error)


@pytest.mark.parametrize("value", [["text/html"], {"text/html": 1}, None, 5, 1e300])
@pytest.mark.parametrize("field", ["mime", "status", "url"])
def test_what_a_capture_says_in_another_kind_is_no_page(tmp_path: Path, field: str, value: object) -> None:
    capture = {"url": "http://a.example/", "mime": "text/html", "status": "200", field: value}
    lines = f"com,a)/ 20260101000000 {json.dumps(capture)}\nhttp://b.example/\n"
    assert read(made(tmp_path, lines.encode())) == ["http://b.example/"]


def test_a_list_that_is_not_there(tmp_path: Path) -> None:
    run = crawl(tmp_path / "a", settings(tmp_path), "--seeds", str(tmp_path / "none"))
    assert run.status == 2 and run.errors.count("\n") == 1 and "No such file" in run.errors
    run = crawl(tmp_path / "a", settings(tmp_path), "--seeds", str(tmp_path))
    assert run.status == 2 and run.errors.count("\n") == 1 and "holds no tables" in run.errors


def test_a_sitemap_as_a_seed(site: SmallSite, tmp_path: Path) -> None:
    """Is read for its links, which are followed."""
    text = "".join(f"<url><loc>{site.url}p{number}</loc></url>" for number in (7, 8))
    site.answers["/map.xml"] = 200, {"Content-Type": "application/xml"}, f"<urlset>{text}</urlset>".encode()
    assert crawl(tmp_path / "a", settings(tmp_path), f"{site.url}map.xml").status == 0
    assert sorted(archived(tmp_path / "a")) == [f"{site.url}map.xml", f"{site.url}p7", f"{site.url}p8"]


def test_a_damaged_list_is_told(site: SmallSite, tmp_path: Path) -> None:
    config = settings(tmp_path, dns={"private": ["127.0.0.1"]})
    list_ = made(tmp_path, f"{site.url}p5\n{site.url}p6\n".encode())
    assert crawl(tmp_path / "a", config, "--seeds", str(list_), "--pages", "1").status == 0
    SeedList(tmp_path / "a").path.write_bytes(b"\xff\xfe\n")
    run = crawl(tmp_path / "a", config, "--pages", "9")
    assert run.status == 3 and run.errors.count("\n") == 1 and "seeds.txt" in run.errors


def test_no_pipe_for_a_wacz(tmp_path: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as bundle:
        bundle.writestr("pages/pages.jsonl", '{"format": "x"}\n{"url": "http://a.example/"}\nnonsense\n')
    assert read(made(tmp_path, data.getvalue())) == ["http://a.example/"]
    done = subprocess.run(
        command(tmp_path / "b", settings(tmp_path), "--seeds", "-"),
        input=data.getvalue(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1 and b"name the file" in done.stderr


# -- stopped while it is read -------------------------------------------------------------------------


def begun_to_read(into: Path, source: str, config: Path, *arguments: str) -> "tuple[subprocess.Popen[str], int]":
    """A crawl in the midst of reading seeds that do not end, and the end of a pipe that it waits for."""
    reading, writing = os.pipe()
    process = begin(
        into, config, "--seeds", source, *arguments,
        stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.write(writing, b"http://a.example/\n")
    wait_until(lambda: not waits(reading) if source == "-" else has_open(process.pid, source))
    os.close(reading)
    return process, writing


def waits(pipe: int) -> bool:
    """Whether something is in the pipe that nobody read."""
    return any(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))


def has_open(process: int, path: str) -> bool:
    with suppress(OSError):
        return any(str(file.readlink()) == path for file in Path(f"/proc/{process}/fd").iterdir())
    return False


@pytest.mark.parametrize(("source", "agents"), [("-", "1"), ("-", "2"), ("/dev/zero", "1")])
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0), (signal.SIGHUP, 130)], ids=["int", "term", "hup"]
)
def test_a_signal_to_stop_ends_the_reading_at_once(
    tmp_path: Path, source: str, agents: str, number: int, status: int
) -> None:
    """The first is enough, and a line says what was done: nothing, so no folder is left."""
    process, pipe = begun_to_read(tmp_path / "a", source, settings(tmp_path), "--agents", agents)
    process.send_signal(number)
    out, errors = process.communicate(timeout=10)
    os.close(pipe)
    assert process.returncode == status and not (tmp_path / "a").exists()
    assert (summary := json.loads(out))["ending"] == "stopped" and summary["pages"] == summary["visits"] == 0
    (line,) = errors.splitlines()
    assert line.startswith("fyke: stopped while seeds were read") and "same command" in line


@pytest.mark.parametrize(("source", "agents"), [("-", "1"), ("-", "2"), ("/dev/zero", "1")])
def test_the_end_of_the_time_ends_the_reading(site: SmallSite, tmp_path: Path, source: str, agents: str) -> None:
    """As a signal does. The line says which seeds were not read; a later run reads all."""
    config = settings(tmp_path, dns={"private": ["127.0.0.1"]})
    process, pipe = begun_to_read(tmp_path / "a", source, config, "--agents", agents, "--for", "2s")
    out, errors = process.communicate(timeout=12)
    os.close(pipe)
    assert process.returncode == 0 and not (tmp_path / "a").exists()
    assert (summary := json.loads(out))["ending"] == "time" and summary["pages"] == summary["visits"] == 0
    (line,) = errors.splitlines()
    assert line.startswith("fyke: its time was over while seeds were read") and "same command" in line
    assert f"after the first {1 if source == '-' else 0} were not read" in line
    list_ = made(tmp_path, f"{site.url}p5\n{site.url}p6\n".encode())
    assert crawl(tmp_path / "a", config, "--seeds", str(list_), "--agents", agents, "--for", "60s").status == 0
    assert {f"{site.url}p5", f"{site.url}p6"} <= {*archived(tmp_path / "a")}


@pytest.mark.parametrize("comes_in", ["write", "compare"])
def test_a_signal_that_comes_while_a_seed_is_kept_is_told_in_a_line_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comes_in: str
) -> None:
    """Also if the source is between two seeds: nothing is told of how it is left."""

    def struck(_: SeedList, urls: Iterable[str]) -> None:
        assert next(iter(urls)) == HOSTS[0]
        signal.raise_signal(signal.SIGTERM)

    list_, config = made(tmp_path, "\n".join(HOSTS).encode()), settings(tmp_path)
    if comes_in == "compare":
        (tmp_path / "a").mkdir()
        with CrawlDirectory(tmp_path / "a").recorded(load(config), HOSTS):
            pass
    monkeypatch.setattr(SeedList, comes_in, struck)
    run = crawl_here(tmp_path / "a", config, "--seeds", str(list_))
    assert run.status == 0 and run.errors.count("\n") == 1 and "after the first 1 were not read" in run.errors
    gc.collect()  # a warning of what could not be raised would be an error


def test_a_crawl_that_is_there_stays_as_it_is_when_the_reading_is_stopped(site: SmallSite, tmp_path: Path) -> None:
    config = settings(tmp_path, dns={"private": ["127.0.0.1"]})
    list_ = made(tmp_path, b"http://a.example/\n" + f"{site.url}p5\n".encode())
    for more, ending, status in (  # one has ended; the others go on
        ((), "stopped", 130),
        (("--pages", "9"), "stopped", 130),
        (("--pages", "9", "--for", "2s"), "time", 0),
    ):
        assert crawl(tmp_path / "a", config, "--seeds", str(list_), "--pages", "1").status == 0
        before = sorted(archived(tmp_path / "a"))
        process, pipe = begun_to_read(tmp_path / "a", "-", config, *more)
        if ending == "stopped":
            process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=12)
        assert errors.count("\n") == 1 and process.returncode == status
        assert (summary := json.loads(out))["ending"] == ending and summary["pages"] == 1
        os.close(pipe)
        assert sorted(archived(tmp_path / "a")) == before
    assert crawl(tmp_path / "a", config, "--seeds", str(list_), "--pages", "9").status == 0
    assert len(archived(tmp_path / "a")) == 2


def test_on_a_terminal_it_is_said_that_seeds_are_read(tmp_path: Path) -> None:
    """Also before there is one."""
    terminal, standard = os.openpty()
    process = begin(tmp_path / "a", settings(tmp_path), "--seeds", "/dev/zero", stderr=standard)
    os.close(standard)
    said = b""
    while b"reading seeds" not in said:
        said += os.read(terminal, 1000)
    process.send_signal(signal.SIGINT)
    with suppress(OSError):  # it is closed at the other end
        while piece := os.read(terminal, 1000):
            said += piece
    assert process.wait(10) == 130 and b"fyke: stopped while" in said
