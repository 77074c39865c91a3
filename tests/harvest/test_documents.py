"""PDF files are read like pages, by a process that may die."""

import json
import os
import resource
import signal
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.runs import archived, crawl, fyke
from crawl.runs import settings as crawl_settings
from crawl.small_site import small_site
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page, PageLinks
from fyke.core.visits import Exchange, visit_to
from fyke.harvest.documents import EACH_S, MOST_FAULTS, MOST_S, Documents
from harvest.pdfs import pdf

LINES = [
    "A report about plums",
    "Plums (Prunus) are a fruit with a stone.",
    "More at http://127.0.0.1/written of them.",
]


def page_of(content: bytes) -> Page:
    exchange = Exchange(visit_to("http://a.example/x.pdf"), Outcome.OK, 0.0, 0.0)
    return Page(exchange, "application/pdf", content, links=PageLinks("http://a.example/x.pdf"))


@pytest.fixture
def documents():
    reader = Documents()
    yield reader
    reader.close()


def test_title_text_and_links(documents: Documents) -> None:
    page = page_of(pdf(LINES, "Plums \\ (all of them)", ["http://a.example/1", "/2?(x)"], pages=3))
    documents.process(page)
    assert page.title == "Plums \\ (all of them)"
    assert page.text.split("\n\n") == ["\n".join(LINES)] * 3
    assert page.links.pages == ["http://a.example/1", "/2?(x)", "http://127.0.0.1/written"]  # that on the second
    assert page.findings == {"Documents": {"pages": 3}}


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        (b"\xfe\xff\xd8\x00\x00A", "\ufffdA"),  # half a pair
        (b"\xfe\xff\x00A\xdc\x00", "A\ufffd"),
        (b"\xff\xfeA\x00\x00\xd8", "A\ufffd"),
        (b"\xfe\xff" + b"\xdf\xff" * 200, "\ufffd" * 200),
        (b"\xef\xbb\xbf\xff", ""),
        (b"\xfe\xff\x00", ""),
        (b"plain", "plain"),
    ],
)
def test_whatever_the_title_the_text_is_read(title: bytes, shown: str, documents: Documents) -> None:
    whole = pdf(LINES, "T" * len(title), ["http://a.example/1"])
    page = page_of(whole.replace(b"T" * len(title), title))
    documents.process(page)
    assert page.text == "\n".join(LINES) and page.links.pages == ["http://a.example/1"], page.findings
    assert page.title == shown


@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=200) | st.tuples(st.integers(0, 900), st.binary(min_size=1, max_size=9)))
def test_whatever_the_bytes_the_next_is_read(damage: bytes | tuple[int, bytes]) -> None:
    whole = pdf(LINES, "Plums", ["http://a.example/1"])
    content = (
        damage if isinstance(damage, bytes) else whole[: damage[0]] + damage[1] + whole[damage[0] + len(damage[1]) :]
    )
    page, after = page_of(content), page_of(whole)
    READER.process(page)
    READER.process(after)
    assert after.text == "\n".join(LINES) and isinstance(page.text, str)


READER = Documents()


def test_a_worker_that_dies_costs_one_document(documents: Documents) -> None:
    first, during, after = page_of(pdf(LINES)), page_of(pdf(LINES)), page_of(pdf(LINES))
    documents.process(first)
    assert documents._process is not None
    os.kill(documents._process.pid, signal.SIGKILL)
    documents._process.wait()
    documents.process(during)
    assert during.text == "" and "could not be read" in during.findings["Documents"]["fault"]
    documents.process(after)
    assert after.text == first.text != ""


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("import time; time.sleep(600)", "too long"),
        ("import sys; sys.stdin.buffer.read(8); sys.stdout.buffer.write(b'\\xff' * 9); input()", "too long"),
        ("import os, sys; sys.stdin.buffer.read(8); os.abort()", "died"),
        ("import sys; sys.stdin.buffer.read(8); print('\\0' * 7 + chr(2) + '[]', flush=True); input()", ""),
    ],
)
@pytest.mark.parametrize("size", [0, 1 << 20])
@pytest.mark.timeout(60)
def test_a_worker_that_went_wrong(program: str, fault: str, size: int, tmp_path: Path) -> None:
    """It hangs, answers without end, crashes, says something else; the document fits into a pipe, or does not."""
    (tmp_path / "worker.py").write_text(program)
    documents = Documents(0.5, tmp_path / "worker.py")
    page = page_of(pdf(LINES) + bytes(size))
    documents.process(page)
    assert page.text == ""
    assert size or fault in page.findings["Documents"].get("fault", "")
    documents.close()


def test_documents_are_read_beside_thousands_of_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    documents = Documents()
    try:
        page = page_of(pdf(LINES))
        documents.process(page)
        assert page.text == "\n".join(LINES)
    finally:
        documents.close()
        for descriptor in others:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_page_that_unfolds_to_hundreds_of_megabytes_has_no_room_for_them() -> None:
    bomb = zlib.compress(b"(x) Tj " * (20 << 20), 1)
    stream = b"<< /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream" % (len(bomb), bomb)
    whole = pdf(LINES)
    begin, end = whole.index(b"<< /Length"), whole.index(b"endstream") + len(b"endstream")
    page = page_of(whole[:begin] + stream + whole[end:])
    with closing(Documents()) as documents, ThreadPoolExecutor(1) as beside:
        documents.process(page_of(whole))
        assert documents._process is not None
        status, peaks_kb = Path(f"/proc/{documents._process.pid}/status"), [0]
        reading = beside.submit(documents.process, page)
        while not reading.done():
            with suppress(OSError):
                peaks_kb += [int(line.split()[1]) for line in status.read_text().splitlines() if "VmHWM" in line]
        reading.result()
    assert page.text == ""
    assert "its reader died" in page.findings["Documents"]["fault"]
    assert 50_000 < max(peaks_kb) < 256 << 10


def test_a_domain_whose_documents_take_too_long_is_left(documents: Documents, tmp_path: Path) -> None:
    """Documents of others go on."""
    (tmp_path / "worker.py").write_text("import time\ntime.sleep(60)\n")
    hasty = Documents(0.2, worker=tmp_path / "worker.py")
    pages = [page_of(pdf(LINES)) for _ in range(MOST_FAULTS + 1)]
    for page in pages:
        hasty.process(page)
        assert page.text == ""
    hasty.close()
    assert "too long" in pages[0].findings["Documents"]["fault"]
    assert "of its domain" in pages[-1].findings["Documents"]["fault"]
    other = page_of(pdf(LINES))
    other.exchange.visit.domain += 1
    documents.process(other)
    assert other.text


def worker_that_takes(seconds: float, folder: Path) -> Documents:
    """A reader in whose words each document took so long."""
    answer = json.dumps({"text": "words", "took_s": seconds})
    (folder / "worker.py").write_text(
        "import sys\n"
        "while len(head := sys.stdin.buffer.read(8)) == 8:\n"
        "    sys.stdin.buffer.read(int.from_bytes(head, 'big'))\n"
        f"    sys.stdout.buffer.write(({len(answer)}).to_bytes(8, 'big') + {answer.encode()!r})\n"
        "    sys.stdout.buffer.flush()\n"
    )
    return Documents(worker=folder / "worker.py")


def test_what_documents_of_a_domain_may_take_grows_with_their_number(tmp_path: Path) -> None:
    """Who has hundreds that take as long as they may has few of them read; it is said which were not. What is quick is
    read, however many there are, and so is what others have."""
    slow = worker_that_takes(2.0, tmp_path)
    pages = [page_of(b"x") for _ in range(101)]
    for page in pages:
        slow.process(page)
    read = [page for page in pages if page.text]
    assert all(page.text for page in pages[:5])
    assert 2.0 * len(read) <= MOST_S + 2.0 + EACH_S * len(pages)
    assert all("take too long" in page.exchange.detail for page in pages if not page.text)
    assert any(page.text for page in pages[-20:]), "it has its share all the time"
    other = page_of(b"x")
    other.exchange.visit.domain += 1
    slow.process(other)
    assert other.text
    slow.close()
    quick = worker_that_takes(EACH_S, tmp_path)
    for page in (pages := [page_of(b"x") for _ in range(200)]):
        quick.process(page)
    assert all(page.text for page in pages)
    quick.close()


@pytest.mark.parametrize("said", ["null", '"1"', "NaN", "-1e300", "true", "[]"])
def test_what_a_worker_says_of_its_time_may_be_nonsense(said: str, tmp_path: Path) -> None:
    documents = worker_that_takes(0.0, tmp_path)
    program = (tmp_path / "worker.py").read_text()
    length = len(json.dumps({"text": "words", "took_s": 0.0}))
    (tmp_path / "worker.py").write_text(
        program.replace(str(length), str(length - 3 + len(said)), 1).replace('"took_s": 0.0', f'"took_s": {said}')
    )
    for _ in range(50):
        page = page_of(b"x")
        documents.process(page)
    assert page.text == "words"
    documents.close()


def test_a_long_document_is_not_held_another_time(documents: Documents) -> None:
    page = page_of(pdf(["words"]) + bytes(32 << 20))
    tracemalloc.start()
    documents.process(page)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert page.document_text == "words" and most_bytes < page.size_bytes / 4


def test_crawled_indexed_exported(tmp_path: Path) -> None:
    """A PDF's links are followed, its text is found, and is in what is exported."""
    into = tmp_path / "there"
    with small_site(pages=2) as site:
        lines = [*LINES, f"Hidden: {site.url}written.html"]
        links = f"<a href=/paper.pdf>p</a><a href=/broken.pdf>b</a>{'words of a page ' * 30}".encode()
        site.answers["/"] = 200, {"Content-Type": "text/html"}, links
        site.answers["/paper.pdf"] = (
            200,
            {"Content-Type": "application/pdf"},
            pdf(lines * 4, "On plums", ["/p1"], pages=2),
        )
        site.answers["/broken.pdf"] = 200, {"Content-Type": "application/pdf"}, b"%PDF-1.4 and no more"
        site.answers["/written.html"] = 200, {"Content-Type": "text/html"}, b"<title>w</title>"
        assert crawl(into, crawl_settings(tmp_path), site.url).status == 0
        names = ("", "p1", "paper.pdf", "broken.pdf", "written.html")
        assert {*archived(into)} >= {f"{site.url}{name}" for name in names}
        url = f"{site.url}paper.pdf"
    assert fyke("index", str(into)).returncode == 0
    found = fyke("search", str(into), "prunus", "--json")
    assert found.returncode == 0 and url in found.stdout and "On plums" in found.stdout
    done = fyke("export", str(into), "--to", "jsonl", "--out", str(tmp_path / "pages.jsonl"))
    assert done.returncode == 0, done.stderr
    rows = {row["url"]: row for row in map(json.loads, (tmp_path / "pages.jsonl").read_text().splitlines())}
    assert rows[url]["title"] == "On plums" and "fruit with a stone" in rows[url]["text"]
    assert f"{site.url}broken.pdf" not in rows
