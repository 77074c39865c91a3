"""Bodies as servers compress them: whole, cut, in layers, and made to unfold without end."""

import gzip

from alone import traced
from conformance.oracles import ORACLES, judge
from fyke.core.decoding import Decoded, decode_body
from fyke.core.document import Document
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Visit

FOLDER = ORACLES / "compressed"
CODINGS = {
    "html-br.bin": "br",
    "html-gzip.bin": "gzip",
    "html-gzip-deflate.bin": "gzip, deflate",
    "html-gzip-deflate-gzip.bin": "gzip, deflate, gzip",
    "html-rawdeflate.bin": "deflate",
    "html-zlibdeflate.bin": "deflate",
    "html-zstd-static-content-size.bin": "zstd",
    "html-zstd-static-no-content-size.bin": "zstd",
    "html-zstd-streaming-no-content-size.bin": "zstd",
}
BOMBS = {"bomb-br.bin": "br", "bomb-deflate.bin": "deflate", "bomb-gzip.bin": "gzip", "bomb-zstd.bin": "zstd"}
BOMB_BYTES = 11_511_612


def decoded(name: str, coding: str, most_bytes: int = 128 << 20) -> Decoded:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\n\r\n".encode()
    body = Document((FOLDER / name).read_bytes())
    return decode_body(
        Exchange(Visit("http://h/", 0, 0, 0), Outcome.OK, 0.0, 0.0, head=head, body=body),
        most_bytes,
        1 << 30,
    )


def test_one_page_in_every_coding() -> None:
    page = gzip.decompress((FOLDER / "html-gzip.bin").read_bytes())
    named = page.replace(b"encoding `gzip'", b"encoding `deflate'")
    assert named != page
    problems = {}
    for name, coding in CODINGS.items():
        found = decoded(name, coding)
        wanted = named if coding == "deflate" else page  # it says which it is in
        problems[name] = "" if (found.content, found.fault) == (wanted, "") else f"{found.content[:40]!r} {found.fault}"
    judge(problems)


def test_bombs_unfold_as_far_as_the_limits_go() -> None:
    for name, coding in BOMBS.items():
        whole = decoded(name, coding, most_bytes=1 << 30)
        assert (len(whole.content) >= BOMB_BYTES, whole.fault) == (True, ""), name
        found, peak = traced(decoded, name, coding, most_bytes=1 << 20)
        assert len(found.content) == 1 << 20, name
        assert "unfolds to more" in found.fault, name
        assert peak < 4 << 20, name


def test_cut_files_give_what_they_hold() -> None:
    whole = (FOLDER / "unexpected-eof-output.txt").read_text(encoding="utf-8")
    found = decoded("unexpected-eof.gz", "gzip")
    assert (found.content.decode("latin-1"), found.fault) == (whole, "gzip is cut")
    for name in ("truncated-crc-error.gz", "truncated-crc-error-short.gz"):
        found = decoded(name, "gzip")
        assert found.content[-20:].count(b"</html"), name
        assert found.fault, name


def test_a_feed_in_gzip() -> None:
    assert decoded("feed-sample1.xml.gz", "gzip")[:2] == ((FOLDER / "feed-sample1.xml").read_bytes(), "")
