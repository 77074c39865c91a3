"""Documents that are no text: PDF, office documents and EPUB books, with the extra `fyke[documents]`. Without it they
are archived and not read.

A processing module that the parser has if pypdfium2 is installed. Another process reads (`document_worker`), begun with
the first document. It may crash, hang or run out of memory on what strangers wrote, which costs only that document's
text. If that happens `MOST_FAULTS` times at a domain, no more of its documents are read. The documents of a domain may
take `EACH_S` each, and `MOST_S` beyond; after that, some are not read.

Invariant: `process` returns within `PATIENCE_S`, whatever the bytes.
"""

import json
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fyke.core.pages import Page
from fyke.harvest.links import collapsed

_OOXML, _ODF = "application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument."
DOCUMENT_TYPES = (
    "application/pdf",
    "application/epub+zip",
    *(
        f"{_OOXML}{kind}"
        for kind in ("wordprocessingml.document", "presentationml.presentation", "spreadsheetml.sheet")
    ),
    *(f"{_ODF}{kind}" for kind in ("text", "presentation", "spreadsheet")),
)
PATIENCE_S = 5.0  # more than the worker takes for itself
REPLY_BYTES = 32 << 20
MOST_FAULTS = 3
EACH_S = 0.25  # of processor time for each document of a domain
MOST_S = 10.0  # beyond that, for all of them
DOMAINS = 10_000  # whose faults and times are remembered
WORKER = Path(__file__).with_name("document_worker.py")


def installed() -> bool:
    """Return whether the extra is installed."""
    return find_spec("pypdfium2") is not None


class Documents:
    """Finds title, text and links of documents, in `patience_s` for each."""

    media_types = DOCUMENT_TYPES

    def __init__(self, patience_s: float = PATIENCE_S, worker: Path = WORKER) -> None:
        self._patience_s = patience_s
        self._worker = worker
        self._process: subprocess.Popen[bytes] | None = None
        self._ending: weakref.finalize[Any, Any] | None = None
        self._faults: Counter[int] = Counter()  # by the key of the domain
        self._taken_s: dict[int, float] = {}  # by the same, beyond `EACH_S` for each of its documents
        self._lock = threading.Lock()  # one document at a time, whichever thread asks

    def __repr__(self) -> str:
        return f"Documents({self._process!r})"

    def process(self, page: Page) -> None:
        """Fill `title`, `links` and the text of `page`. A fault is noted in its findings and at its exchange."""
        with self._lock:
            said = self._read(page.content, page.exchange.visit.domain)
        page.title = collapsed(_string(said.get("title")))
        page.document_text = _string(said.get("text"))
        links = said.get("links")
        page.links.pages += [link for link in links if isinstance(link, str)] if isinstance(links, list) else []
        page.cut = page.cut or said.get("cut") is True
        page.findings[type(self).__name__] = {name: said[name] for name in ("pages", "fault") if name in said}
        if "fault" in said and not page.exchange.detail:
            page.exchange.detail = f"not read as a document: {_string(said['fault'])}"

    def _read(self, content: bytes, domain: int) -> dict[str, Any]:
        if self._faults[domain] >= MOST_FAULTS:
            return {"fault": f"{MOST_FAULTS} documents of its domain could not be read"}
        if self._taken_s.get(domain, 0.0) > MOST_S:
            self._note_time(domain, 0.0)
            return {"fault": "documents of its domain take too long, so only some of them are read"}
        process = self._process or self._begin()
        deadline = time.monotonic() + self._patience_s
        try:
            assert process.stdin is not None and process.stdout is not None
            for part in (len(content).to_bytes(8, "big"), content):  # apart, because together they would be a copy
                _give(process.stdin.fileno(), part, deadline)
            size = int.from_bytes(_taken(process.stdout.fileno(), 8, deadline), "big")
            if size > REPLY_BYTES:
                raise ValueError("its text is too long")
            said = json.loads(_taken(process.stdout.fileno(), size, deadline))
            said = said if isinstance(said, dict) else {}
            self._note_time(domain, said.get("took_s"))
            return said
        except (OSError, ValueError, RecursionError) as error:
            self.close()
            if len(self._faults) >= DOMAINS:
                self._faults.clear()
            self._faults[domain] += 1
            return {"fault": f"the document could not be read: {error}"}

    def _note_time(self, domain: int, took_s: Any) -> None:
        """Note that a document of `domain` took `took_s`, a value that the worker sent."""
        took_s = min(took_s, PATIENCE_S) if isinstance(took_s, float) and took_s > 0 else 0.0
        beyond_s = self._taken_s.pop(domain, 0.0) + took_s - EACH_S
        if len(self._taken_s) >= DOMAINS:
            self._taken_s.clear()
        if beyond_s > 0:
            self._taken_s[domain] = beyond_s

    def _begin(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(self._worker)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            process_group=0,  # so that Ctrl-C does not reach it
        )
        self._ending = weakref.finalize(self, _end, self._process)
        return self._process

    def close(self) -> None:
        """End the worker; the next document begins another."""
        if self._ending is not None:
            self._ending()
        self._process = self._ending = None


def _taken(descriptor: int, size: int, deadline: float) -> bytes:
    """Return the next `size` bytes. Raises TimeoutError, and OSError if the worker died."""
    parts = []
    while size:
        _wait_for(descriptor, select.POLLIN, deadline)
        part = os.read(descriptor, min(size, 1 << 20))
        if not part:
            raise OSError("its reader died")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _give(descriptor: int, content: bytes, deadline: float) -> None:
    """Write `content`. Raises TimeoutError, or another OSError if nobody reads any more."""
    os.set_blocking(descriptor, False)
    rest = memoryview(content)
    while rest:
        _wait_for(descriptor, select.POLLOUT, deadline)
        rest = rest[os.write(descriptor, rest) :]


def _wait_for(descriptor: int, event: int, deadline: float) -> None:
    """Wait until the descriptor is ready. Raises TimeoutError."""
    waiting = select.poll()  # `select` refuses descriptors above 1023
    waiting.register(descriptor, event)
    if not waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise TimeoutError("it takes too long")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # unsent bytes cannot be flushed
                pipe.close()
    process.wait()


def _string(value: Any) -> str:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
