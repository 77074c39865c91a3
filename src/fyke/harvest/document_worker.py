"""Reads documents in a process of its own, which may die: the program that `fyke.harvest.documents` starts.

A length of eight bytes and a PDF, or a zipped document (`office_worker`), come in. A length and a JSON object go out:
title, text, links, pages, or a fault; and the processor time that it took. pdfium is C++ that reads what strangers
wrote, so this process has no rights and little room: it may write no file, its memory has a limit, and after `WORK_S`
seconds it stops with what it has read. It imports nothing of Fyke, which would cost more than most documents.
"""

import ctypes
import importlib.util
import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

ZIPPED = b"PK\x03\x04"
MEMORY_BYTES = 256 << 20  # of addresses: books of 4 MB take 60
WORK_S = 3.0  # of processor time for a document
MOST_PAGES = 2_000
MOST_CHARS = 1 << 20
MOST_LINKS = 10_000
URL_BYTES = 4 << 10
FAULT_CHARS = 200  # it may quote a name


def read(data: bytes) -> dict[str, Any]:
    """Return what the PDF `data` says, as far as time and limits allow."""
    began = time.process_time()
    document = pypdfium2.PdfDocument(data)
    texts: list[str] = []
    links: dict[str, None] = {}
    chars = pages = 0
    for pages in range(1, min(len(document), MOST_PAGES) + 1):
        page = document[pages - 1]
        words = page.get_textpage()
        texts.append(words.get_text_range(0, min(words.count_chars(), MOST_CHARS - chars)))
        chars += len(texts[-1])
        for url in [*_annotated(document, page)] or _written(words):
            if len(links) < MOST_LINKS:
                links[url] = None
        words.close()
        page.close()
        if chars >= MOST_CHARS or time.process_time() - began > WORK_S:
            break
    text = "\n\n".join(texts).replace("\ufffe\r\n", "").replace("\ufffe", "").replace("\r\n", "\n")
    cut = chars >= MOST_CHARS or pages < len(document)
    return {"title": _title(document)[:MOST_CHARS], "text": text, "links": [*links], "pages": pages, "cut": cut}


def _title(document: pypdfium2.PdfDocument) -> str:
    """Return the title that `document` gives itself, even if it is not quite UTF-16."""
    size = pdfium.FPDF_GetMetaText(document, b"Title", None, 0)
    buffer = ctypes.create_string_buffer(size)
    pdfium.FPDF_GetMetaText(document, b"Title", buffer, size)
    return buffer.raw[: max(0, size - 2)].decode("utf-16-le", "replace")  # it ends with a zero


def _annotated(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage) -> Iterator[str]:
    """Yield the URLs of those links of `page` that a reader may click on."""
    at, link = ctypes.c_int(0), pdfium.FPDF_LINK()
    for _ in range(MOST_LINKS):
        if not pdfium.FPDFLink_Enumerate(page, at, link):
            return
        action = pdfium.FPDFLink_GetAction(link)
        size = pdfium.FPDFAction_GetURIPath(document, action, None, 0) if action else 0
        if 1 < size <= URL_BYTES:
            buffer = ctypes.create_string_buffer(size)
            pdfium.FPDFAction_GetURIPath(document, action, buffer, size)
            yield buffer.value.decode("utf-8", "replace")


def _written(words: pypdfium2.PdfTextPage) -> Iterator[str]:
    """Yield the URLs in the text itself. Used only for pages without other links, because a line's end may cut them."""
    found = pdfium.FPDFLink_LoadWebLinks(words)
    try:
        for number in range(min(pdfium.FPDFLink_CountWebLinks(found), MOST_LINKS)):
            size = pdfium.FPDFLink_GetURL(found, number, None, 0)
            if 1 < size <= URL_BYTES:
                buffer = (ctypes.c_ushort * size)()
                pdfium.FPDFLink_GetURL(found, number, buffer, size)
                yield bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")
    finally:
        pdfium.FPDFLink_CloseWebLinks(found)


def _office() -> Any:
    """Return the module `office_worker` beside this file, found by its path so that nothing of Fyke is loaded."""
    spec = importlib.util.spec_from_file_location("office_worker", Path(__file__).with_name("office_worker.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Answer requests until none come."""
    office = _office()
    for limit, most in (("AS", MEMORY_BYTES), ("FSIZE", 0), ("CORE", 0)):
        resource.setrlimit(getattr(resource, f"RLIMIT_{limit}"), (most, most))
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    while len(head := asked.read(8)) == 8:
        data = asked.read(int.from_bytes(head, "big"))
        began = time.process_time()
        try:
            said = office.read_office(data) if data.startswith(ZIPPED) else read(data)
        except (pypdfium2.PdfiumError, ValueError, MemoryError, *office.FAULTS) as error:
            said = {"fault": str(error)[:FAULT_CHARS] or type(error).__name__}
        data = b""  # or the next document would be held beside it
        reply = json.dumps({**said, "took_s": time.process_time() - began}).encode()
        answers.write(len(reply).to_bytes(8, "big") + reply)
        answers.flush()


if __name__ == "__main__":
    main()
