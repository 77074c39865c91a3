"""Archives that other crawlers wrote go through our writer unchanged, with the same keys and digests."""

import json
from base64 import b32encode
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from conformance.oracles import ORACLES, judge
from fyke.archive.cdxj import read_lines
from fyke.archive.check import check_archive
from fyke.archive.warc import WarcWriter
from fyke.archive.warc_reading import read_records
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.urls import canonical
from fyke.core.visits import Exchange, visit_to

FOLDER = ORACLES / "warc"


class Answer(NamedTuple):
    """A response or resource of a foreign archive; `digest` is the payload's as written there, or empty."""

    file: str
    offset: int
    url: str
    head: bytes
    body: bytes
    digest: str


def archives() -> list[Path]:
    return sorted(path for path in FOLDER.rglob("*") if path.name.endswith((".warc", ".warc.gz", ".arc", ".arc.gz")))


def answers(path: Path) -> Iterator[Answer]:
    with path.open("rb") as file:
        records = ArchiveIterator(file, no_record_parse=True, arc2warc=True)
        for record in records:
            if record.rec_type not in ("response", "resource"):
                continue
            block = record.raw_stream.read()
            head, blank, body = block.partition(b"\r\n\r\n") if record.rec_type == "response" else (b"", b"", block)
            url = canonical(record.rec_headers["WARC-Target-URI"].strip("<>"))
            if url and (head or not url.startswith("http")):
                digest = in_base32(record.rec_headers["WARC-Payload-Digest"] or "")
                yield Answer(path.name, records.get_record_offset(), url, head + blank, body, digest)


def in_base32(digest: str) -> str:
    """A digest as most write it; some have it in hexadecimal."""
    name, _, value = digest.partition(":")
    return f"{name}:{b32encode(bytes.fromhex(value)).decode()}" if len(value) == 40 else digest


def exchange(answer: Answer) -> Exchange:
    words = answer.head.split(b" ", 2)
    status = int(words[1][:3]) if len(words) > 1 else 0
    return Exchange(
        visit_to(answer.url), Outcome.OK, 0.0, 0.0, status=status, head=answer.head, body=Document(answer.body)
    )


def test_what_others_archived_comes_back_from_our_archive(tmp_path: Path) -> None:
    every = [answer for path in archives() for answer in answers(path)]
    assert len(every) > 100
    problems = {}
    with_digest = 0
    writer = WarcWriter(tmp_path, 1 << 30, "test")
    for answer in every:
        digest = writer.write(exchange(answer)).digest
        told = answer.digest.startswith("sha1:")
        with_digest += told
        name = f"{answer.file} {answer.offset}"
        problems[name] = "" if not told or digest == answer.digest else f"{digest} where {answer.digest} is expected"
    writer.close()
    (path,) = (tmp_path / "warc").glob("*.warc.gz")
    assert Checker(SimpleNamespace(inputs=[str(path)], verbose=False)).process_all() == 0
    assert {"was archived before" in fault.what for fault in check_archive(tmp_path)} <= {True}
    assert [(a.url, a.head, a.body) for a in answers(path)] == [(a.url, a.head, a.body) for a in every]
    assert with_digest > 50
    judge(problems)


def test_our_index_says_what_that_of_pywb_says(tmp_path: Path) -> None:
    """SURT, digest, status and media type of every answer that pywb has indexed."""
    theirs = {}
    for path in FOLDER.glob("pywb/*.cdxj"):
        for line in path.read_text().splitlines():
            key, _, fields = line.split(" ", 2)
            known = json.loads(fields)
            theirs[known["filename"], int(known["offset"])] = (key, known)
    writer = WarcWriter(tmp_path, 1 << 30, "test")
    places = {}
    for path in archives():
        for answer in answers(path):
            if (path.name, answer.offset) in theirs and path.parent.name == "pywb":
                places[writer.write(exchange(answer)).offset] = (path.name, answer.offset)
    writer.close()
    (index,) = (tmp_path / "warc").glob("*.cdxj")
    problems = {}
    for key, _, fields in read_lines(index):
        place = places[int(fields["offset"])]
        other, known = theirs[place]
        ours = (key, fields["digest"].removeprefix("sha1:"), fields.get("status"), fields.get("mime", "unk"))
        wanted = (other, known["digest"], known.get("status"), known.get("mime"))
        problems[" ".join(map(str, place))] = "" if ours == wanted else f"{ours} where {wanted} is expected"
    judge(problems)


def test_our_reader_says_what_it_does_not_know_and_goes_on() -> None:
    """It is made for what Fyke writes; of other files it accounts for every byte, and never raises."""
    for path in archives():
        records = list(read_records(path))
        assert sum(record.length for record in records) == path.stat().st_size, path
        assert all(record.faults for record in records if not record.fields), path
