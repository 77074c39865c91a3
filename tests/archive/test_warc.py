"""The archive: what other people's tools read in it, and what a crash leaves of it."""

import errno
import gzip
import json
import os
import random
import resource
import subprocess
import sys
from base64 import b32encode
from collections.abc import Iterator
from email import message_from_bytes
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker
from warcio.statusandheaders import StatusAndHeaders, StatusAndHeadersParser

from fyke.archive.cdxj import read_lines
from fyke.archive.check import check_archive
from fyke.archive.reading import read_table
from fyke.archive.records import CHUNK_BYTES, Dates, Original, RecordIds, digest_text, metadata_fields, pack
from fyke.archive.warc import WarcWriter
from fyke.core.document import Document
from fyke.core.errors import DirectoryError, DiskFull, StateDamaged
from fyke.core.outcomes import Outcome
from fyke.disk.files import explained

NAME = "warc/fyke-crawl-00000.warc.gz"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n"

values = st.binary(max_size=40).map(lambda v: bytes(b for b in v if b not in b"\r\n"))
heads = st.lists(values, max_size=5).map(
    lambda vs: b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-Field: " + v + b"\r\n" for v in vs) + b"\r\n"
)
bodies = st.one_of(st.just(b""), st.binary(max_size=300), st.binary(min_size=1, max_size=4).map(lambda b: b * 700_000))


def blocks(path: Path) -> dict[str, list[bytes]]:
    """The blocks of every record by type, as fastwarc reads them."""
    found: dict[str, list[bytes]] = {}
    with path.open("rb") as file:
        for record in FastIterator(file, parse_http=False):
            found.setdefault(record.headers["WARC-Type"], []).append(record.reader.read())
    return found


def assert_tools_agree(path: Path) -> None:
    """`warcio check` and `fastwarc check -p` find nothing to say about the file."""
    assert Checker(SimpleNamespace(inputs=[str(path)], verbose=False)).process_all() == 0
    with path.open("rb") as file:
        for record in FastIterator(file, parse_http=False):
            if record.headers["WARC-Type"] == "resource":
                assert record.verify_block_digest(consume=False)
            if record.is_http and record.headers["WARC-Type"] == "response":
                record.parse_http()
                assert record.verify_payload_digest()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(head=heads, body=bodies, cut=st.sampled_from(["", "length", "time", "disconnect"]), on_disk=st.booleans())
def test_the_wire_comes_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, make_exchange, head: bytes, body: bytes, cut: str, on_disk: bool
) -> None:
    folder = tmp_path_factory.mktemp("crawl")
    document = Document(memory_bytes=10 if on_disk else 1 << 30)
    for at in range(0, len(body), 100_000):
        document.write(body[at : at + 100_000])
    with WarcCloser(folder) as writer:
        place = writer.write(make_exchange(body=document, head=head, truncated=cut))
    document.close()
    path = folder / NAME
    assert blocks(path)["response"] == [head + body]
    assert_tools_agree(path)
    member = path.read_bytes()[place.offset : place.offset + place.length]
    (record,) = FastIterator(BytesIO(member), parse_http=False)
    assert record.headers.get("WARC-Truncated", "") == cut


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 300_000, 1_500_000])
@pytest.mark.parametrize("field", ["Content-Encoding: gzip", "content-encoding:zstd", "Content-Type: image/png"])
def test_what_came_compressed_is_not_compressed_again(folder: Path, make_exchange, size: int, field: str) -> None:
    """Its record is about as large as the body, and every tool reads it."""
    body = random.Random(size).randbytes(size)
    head = f"HTTP/1.1 200 OK\r\n{field}\r\n\r\n".encode()
    with WarcCloser(folder) as writer:
        place = writer.write(make_exchange(body=body, head=head))
    assert blocks(folder / NAME)["response"] == [head + body]
    member = (folder / NAME).read_bytes()[place.offset : place.offset + place.length]
    assert gzip.decompress(member).endswith(head + body + b"\r\n\r\n")
    assert body[:65_535] in member and place.length < 1.001 * size + 600
    assert_tools_agree(folder / NAME)
    assert not list(check_archive(folder))


@pytest.mark.parametrize("size", [(1 << 20) + 1, 5 * CHUNK_BYTES, 5 * CHUNK_BYTES + 7, 3_000_000])
@pytest.mark.parametrize("coded", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_a_large_body_may_be_packed_before(folder: Path, make_exchange, size: int, coded: bool, before: bool) -> None:
    """By another thread, which knows nothing of the record."""
    body = random.Random(size).randbytes(size // 3) + b"yes" * (size - size // 3)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" if coded else b"HTTP/1.1 200 OK\r\n\r\n"
    document = Document()
    document.write(body)
    exchange = make_exchange(body=document, head=head)
    with WarcCloser(folder) as writer:
        if before:
            pack(exchange)
        place = writer.write(exchange)
    assert document.packed is None
    document.close()
    assert blocks(folder / NAME)["response"] == [head + body]
    member = (folder / NAME).read_bytes()[place.offset : place.offset + place.length]
    assert gzip.decompress(member).endswith(head + body + b"\r\n\r\n")
    assert coded or place.length < size
    assert_tools_agree(folder / NAME)


class WarcCloser(WarcWriter):
    """A writer that closes when its block ends."""

    def __init__(self, folder: Path, warc_bytes: int = 1 << 30) -> None:
        super().__init__(folder, warc_bytes, "test")

    def __enter__(self) -> "WarcCloser":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def test_chunked_and_http2_answers_satisfy_both_tools(folder: Path, make_exchange) -> None:
    with WarcCloser(folder) as writer:
        writer.write(make_exchange(head=CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n"))
        writer.write(make_exchange(head=b"HTTP/2 200 \r\nserver: x\r\n\r\n", effective_protocol="h2"))
        writer.write(make_exchange("ftp://ftp.example/x", b"file", head=b"", request=b"", effective_protocol="ftp"))
    assert_tools_agree(folder / NAME)
    assert blocks(folder / NAME)["resource"] == [b"file"]


def test_heads_with_bare_line_ends_satisfy_warcio(folder: Path, make_exchange) -> None:
    """fastwarc does not find where such a head ends, and calls the payload digest wrong."""
    with WarcCloser(folder) as writer:
        writer.write(make_exchange(head=b"HTTP/1.0 200 OK\nX: y\n\n", body=b"bare line ends"))
    assert Checker(SimpleNamespace(inputs=[str(folder / NAME)], verbose=False)).process_all() == 0
    assert not list(check_archive(folder))


def test_records_of_an_exchange_know_each_other(folder: Path, make_exchange) -> None:
    with WarcCloser(folder) as writer:
        writer.write(make_exchange(detail="two\r\nlines"), via="http://www.example.org/from", charset="utf-8")
    with (folder / NAME).open("rb") as file:
        info, request, response, metadata = [
            (record.rec_headers, record.content_stream().read()) for record in ArchiveIterator(file)
        ]
    assert info[0]["WARC-Type"] == "warcinfo" and b"software: test" in info[1]
    assert [part[0]["WARC-Type"] for part in (request, response, metadata)] == ["request", "response", "metadata"]
    assert request[0]["WARC-Concurrent-To"] == metadata[0]["WARC-Concurrent-To"] == response[0]["WARC-Record-ID"]
    assert response[0]["WARC-Date"] == request[0]["WARC-Date"] == "2026-11-18T11:06:40.250000Z"
    assert response[0]["WARC-IP-Address"] == "192.0.2.7"
    assert metadata[1].decode().splitlines() == [
        "via: http://www.example.org/from",
        "depth: 2",
        "fetchTimeMs: 125",
        "hopsFromSeed: LL",
        "outcome: ok",
        "kind: page",
        "viaKey: 3",
        "charset: utf-8",
        "detail: two lines",
    ]


def revisits(path: Path) -> list[StatusAndHeaders]:
    with path.open("rb") as file:
        return [
            record.rec_headers for record in ArchiveIterator(file, check_digests=True) if record.rec_type == "revisit"
        ]


@pytest.mark.parametrize(
    ("facts", "profile"),
    [
        ({}, "identical-payload-digest"),
        (
            {"head": b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", "body": b"", "status": 304}
            | {"outcome": Outcome.UNCHANGED},
            "server-not-modified",
        ),
    ],
)
def test_a_revisit_points_at_the_original(folder: Path, make_exchange, facts: dict[str, Any], profile: str) -> None:
    with WarcCloser(folder) as writer:
        first = writer.write(make_exchange("http://a.b/"))
        original = Original("http://a.b/", first.date, first.digest)
        again = writer.write(make_exchange("http://www.example.org/2", **facts), refers_to=original)
    assert again.digest == first.digest
    (revisit,) = revisits(folder / NAME)
    assert revisit["WARC-Profile"] == f"http://netpreserve.org/warc/1.1/revisit/{profile}"
    assert revisit["WARC-Refers-To-Target-URI"] == "http://a.b/"
    assert revisit["WARC-Refers-To-Date"] == first.date
    assert revisit["WARC-Payload-Digest"] == first.digest
    found = blocks(folder / NAME)
    if facts:  # a page with this status is none
        assert found["revisit"] == [b""] and b"answered: ETag: x\r\n" in found["metadata"][1]
    else:
        assert found["revisit"][0].startswith(b"HTTP/1.1 200 OK\r\n")
    assert Checker(SimpleNamespace(inputs=[str(folder / NAME)], verbose=False)).process_all() == 0
    assert not list(check_archive(folder))


line_ends = st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n", b"\n\r\n", b"\x0b", b"\x0c", b"\x1e", b"\0", b""])
lines = st.one_of(
    st.sampled_from([b"via: http://evil.test/", b"outcome: gone", b" folded", b":", b'ETag: "a"']),
    st.binary(max_size=20),
)
any_heads = st.lists(st.tuples(lines, line_ends)).map(
    lambda pairs: b"HTTP/1.1 304 X" + b"".join(end + line for line, end in pairs) + b"\n\n"
)


@settings(deadline=None)
@given(head=any_heads, detail=st.text())
@example(head=b'HTTP/1.1 304 X\nvia: http://evil.test/\noutcome: gone\nETag: "a"\n\n', detail="")
@example(head=b"HTTP/1.1 304 X\r\nA: b\rvia: http://evil.test/\r\n\r\n", detail="a\rvia: http://evil.test/")
def test_the_fields_of_a_metadata_record_are_ours(make_exchange, head: bytes, detail: str) -> None:
    """Whatever bytes a head has, and whoever reads it."""
    exchange = make_exchange(status=304, body=b"", outcome=Outcome.UNCHANGED, head=head, detail=detail)
    block = metadata_fields(exchange, "", "")
    by_warcio = StatusAndHeadersParser([], verify=False).parse(BytesIO(block + b"\r\n"), "metadata").headers
    by_email = message_from_bytes(block + b"\r\n").items()
    for fields in (by_warcio, by_email):
        said = [(name, value.strip()) for name, value in fields if name not in ("answered", "detail")]
        assert said == [
            ("depth", "2"), ("fetchTimeMs", "125"), ("hopsFromSeed", "LL"), ("outcome", "unchanged"), ("kind", "page"),
            ("viaKey", "3"),
        ]  # fmt: skip
        answered = [name for name, _ in fields].count("answered")
        assert answered == sum(bool(line.strip(bytes(range(33)) + b"\x7f\x85\xa0")) for line in head.split(b"\n"))


def test_a_copy_that_was_packed_before_is_not_read_again(
    folder: Path, make_exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = random.Random(3).randbytes(3 << 20)
    with WarcCloser(folder) as writer:
        first = writer.write(make_exchange("http://a.b/", body=body))
        copy = make_exchange("http://a.b/copy", body=body)
        pack(copy)
        monkeypatch.setattr(Document, "open", lambda _body: pytest.fail("three megabytes are digested on the loop"))
        again = writer.write(copy, refers_to=Original("http://a.b/", first.date, first.digest))
        copy.body.close()
    assert again.digest == first.digest and len(revisits(folder / NAME)) == 1


@pytest.mark.parametrize(
    "facts",
    [
        {"body": b"another body"},
        {"body": b"another body", "outcome": Outcome.UNCHANGED},  # the same content in another coding
        {"status": 304, "body": b"", "head": b"HTTP/1.1 304 Not Modified\r\n\r\n"},  # nobody asked for it
        {"truncated": "length", "outcome": Outcome.TOO_LARGE},
        {"head": b"", "request": b"", "status": 0},
    ],
)
def test_what_no_revisit_can_say_is_archived_whole(folder: Path, make_exchange, facts: dict[str, Any]) -> None:
    with WarcCloser(folder) as writer:
        first = writer.write(make_exchange())
        original = Original("http://www.example.org/", first.date, first.digest)
        writer.write(make_exchange("http://www.example.org/2", **facts), refers_to=original)
    assert not revisits(folder / NAME)
    assert not list(check_archive(folder))


def test_a_full_file_is_followed_by_the_next(folder: Path, make_exchange) -> None:
    with WarcCloser(folder, 2000) as writer:
        places = [writer.write(make_exchange(f"http://www.example.org/{n}")) for n in range(10)]
    files = sorted(path.name for path in (folder / "warc").glob("*.warc.gz"))
    assert len(files) == len({place.file for place in places}) > 2
    for name in files:
        assert_tools_agree(folder / "warc" / name)
        assert (folder / "warc" / name.replace("warc.gz", "cdxj")).exists()
    assert writer.size_bytes == sum((folder / "warc" / name).stat().st_size for name in files)


def contents(folder: Path) -> dict[str, bytes]:
    """The archive's files that count: a checksum or sorted index may be there a moment sooner or later."""
    return {path.name: path.read_bytes() for path in (folder / "warc").iterdir() if path.name.endswith(".warc.gz")}


@settings(max_examples=30, deadline=None)
@given(before=st.lists(st.integers(0, 3), max_size=12), after=st.integers(0, 8), saved=st.booleans())
def test_restore_gives_back_the_state_and_each_record_comes_once(
    tmp_path_factory: pytest.TempPathFactory, make_exchange, before: list[int], after: int, saved: bool
) -> None:
    folder = tmp_path_factory.mktemp("crawl")
    writer = WarcWriter(folder, 3000, "test")
    state: dict[str, object] = {}
    count = kept = 0
    there: dict[str, bytes] = {}
    for step in before:
        if step:
            writer.write(make_exchange(f"http://www.example.org/{count}"))
            count += 1
        else:
            state, kept = writer.state(), count
            there = contents(folder)
            if saved:
                writer.durable()
    for number in range(after):
        writer.write(make_exchange(f"http://lost.example/{number}"))
    writer.abandon()  # killed
    again = WarcWriter(folder, 3000, "test")
    again.restore(state)
    assert contents(folder) == there
    for number in range(kept, count + 2):
        again.write(make_exchange(f"http://www.example.org/{number}"))
    again.close()
    again.state()
    again.durable()
    found = []
    for path in sorted((folder / "warc").glob("*.warc.gz")):
        assert_tools_agree(path)
        with path.open("rb") as file:
            found += [r.headers["WARC-Target-URI"] for r in FastIterator(file) if r.headers["WARC-Type"] == "response"]
    assert found == [f"http://www.example.org/{number}" for number in range(count + 2)]
    assert not list((folder / "warc").glob("*.open"))
    count_of = {kind: len(list((folder / "warc").glob(kind))) for kind in ("*.cdxj", "*.cdxj.xxh3", "*.gz.xxh3")}
    assert len(set(count_of.values())) == 1, count_of
    assert not list(check_archive(folder))


def test_what_must_be_synced_is_named(folder: Path, make_exchange) -> None:
    writer = WarcWriter(folder, 1 << 30, "test")
    writer.write(make_exchange())
    writer.state()
    names = {path.name for path in writer.dirty_files()}
    assert names == {"warc", "fyke-crawl-00000.warc.gz", "fyke-crawl-00000.cdxj.open"}
    writer.durable()
    writer.write(make_exchange())
    writer.state()
    assert {path.name for path in writer.dirty_files()} == names - {"warc"}
    writer.close()


def test_a_file_shorter_than_the_checkpoint_is_damage(folder: Path, make_exchange) -> None:
    writer = WarcWriter(folder, 1 << 30, "test")
    writer.write(make_exchange())
    state = writer.state()
    writer.close()
    (folder / NAME).write_bytes(b"short")
    with pytest.raises(StateDamaged, match="5 bytes long"):
        WarcWriter(folder, 1 << 30, "test").restore(state)


def test_what_came_without_a_head_is_a_resource(folder: Path, make_exchange) -> None:
    """Also of a URL whose servers speak with heads: whatever a protocol module brings can be archived."""
    with WarcCloser(folder) as writer:
        place = writer.write(make_exchange(head=b"", body=b"as it was rendered"), media_type="text/html")
    assert_tools_agree(folder / NAME)
    assert b"WARC-Type: resource\r\n" in gzip.decompress((folder / NAME).read_bytes()[place.offset :])


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process may grow over 300 KB: as near to a full disk as one gets without one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_is_full_is_told_in_a_line(folder: Path, make_exchange, small_files: None) -> None:
    writer = WarcWriter(folder, 1 << 30, "test")
    noise = random.Random(1).randbytes(50_000)
    with pytest.raises(DiskFull, match=r"cannot write .*fyke-crawl-00000.warc.gz: .*; raise the limit .*ulimit -f"):
        for _ in range(100):
            writer.write(make_exchange(body=noise))
    with pytest.raises(DiskFull):
        writer.state()
    writer.restore({})
    writer.write(make_exchange())
    writer.close()
    assert_tools_agree(folder / NAME)


def test_a_folder_that_is_none_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DirectoryError, match="cannot write"):
        WarcWriter(tmp_path / "file", 1, "test")
    assert isinstance(explained(OSError(errno.EACCES, "Permission denied"), tmp_path), DirectoryError)


@given(st.lists(st.floats(0, 4e9), min_size=1, max_size=5))
def test_dates_do_not_depend_on_what_was_asked_before(times: list[float]) -> None:
    dates = Dates()
    assert [dates.warc(at) for at in times] == [Dates().warc(at) for at in times]
    assert Dates().warc(0.9999999) == "1970-01-01T00:00:01.000000Z"


@given(st.binary(min_size=20, max_size=20))
def test_digests_are_written_as_everybody_writes_them(digest: bytes) -> None:
    assert digest_text(digest) == f"sha1:{b32encode(digest).decode()}"


def test_record_names_never_repeat() -> None:
    one, other = RecordIds(), RecordIds()
    names = [name for ids in (one, other) for _ in range(1000) for name in ids.three()]
    assert len(set(names)) == 6000


KILLED = """
import json, os, sys
from pathlib import Path
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Visit
from fyke.archive.schemas import SCHEMAS
from fyke.archive.tables import LinksTable, PagesTable
from fyke.archive.warc import WarcWriter
from fyke.archive.tables import rows_batch

folder, saved = Path(sys.argv[1]), Path(sys.argv[2])
writers = {"warc": WarcWriter(folder, 20_000, "t"), "pages": PagesTable(folder, 7), "links": LinksTable(folder, 3)}
state = json.loads(saved.read_text()) if saved.exists() else {}
for name, writer in writers.items():
    writer.restore(state.get(name, {}))
number, end = state.get("number", 0), int(sys.argv[3])
while number < end or end == 0:
    url = f"http://a.example/{number}"
    exchange = Exchange(Visit(url, number, 1, 1), Outcome.OK, number, 0.1, status=200,
                        head=b"HTTP/1.1 200 OK\\r\\n\\r\\n", body=Document(os.urandom(500)))
    writers["pages"].add(exchange, writers["warc"].write(exchange))
    writers["links"].add(rows_batch([(number, n, "x", 0) for n in range(5)], SCHEMAS["links"]))
    number += 1
    if number % 5 == 0:
        state = {name: writer.state() for name, writer in writers.items()} | {"number": number}
        saved.with_suffix(".part").write_text(json.dumps(state))
        saved.with_suffix(".part").replace(saved)
        for writer in writers.values():
            writer.durable()
for writer in writers.values():
    writer.close()
    writer.state()
    writer.durable()
"""


def test_a_process_that_is_killed_loses_and_doubles_nothing(folder: Path, tmp_path: Path) -> None:
    saved, dice = tmp_path / "state.json", random.Random(5)
    for _ in range(4):
        before = saved.stat().st_mtime_ns if saved.exists() else 0
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(folder), str(saved), "0"])
        while process.poll() is None and (not saved.exists() or saved.stat().st_mtime_ns == before):
            os.sched_yield()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(dice.uniform(0, 0.2))
        process.kill()
        process.wait()
    end = json.loads(saved.read_text())["number"] + 10
    subprocess.run([sys.executable, "-c", KILLED, str(folder), str(saved), str(end)], check=True)
    assert list(check_archive(folder)) == []
    assert read_table(folder, "pages", ["key"])["key"].to_pylist() == list(range(end))
    assert read_table(folder, "links", ["source"]).num_rows == 5 * end
    entries = [line for path in (folder / "warc").glob("*.cdxj") for line in read_lines(path)]
    assert sorted(int(fields["url"].rpartition("/")[2]) for _, _, fields in entries) == list(range(end))


@pytest.mark.parametrize("crawl", ["n" * 250, "ä" * 125, "n" * 245 + "-0003"], ids=["long", "not English", "an agent"])
def test_the_name_of_a_crawl_may_be_as_long_as_a_folders(folder: Path, make_exchange, crawl: str) -> None:
    """And ends as it did, which tells the agents of a crawl apart."""
    writer = WarcWriter(folder, 1 << 30, "test", crawl=crawl)
    writer.write(make_exchange())
    writer.close()
    (written,) = (folder / "warc").glob("*.warc.gz")
    assert written.name.endswith(f"{'' if 'ä' in crawl else crawl[-100:]}-00000.warc.gz")
    assert_tools_agree(written)
