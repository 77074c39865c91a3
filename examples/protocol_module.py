"""A protocol module: fetch http from a mirror on this disk (as `wget --mirror` leaves it), not from the network.

    python examples/protocol_module.py mirror http://example.org/ there

A folder of old pages becomes a WARC archive with tables, as if it had been crawled; robots.txt also comes from the
mirror. Fyke still looks the host's name up first. For `fyke crawl`, with `PYTHONPATH=examples`: `[plugins] protocols =
["protocol_module:Mirror"]`, which reads the folder `mirror`.
"""

import mimetypes
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import fyke


class Mirror:
    """A protocol module that answers from `folder/host/path`."""

    schemes = ("http",)

    def __init__(self, folder: str = "mirror") -> None:
        self.folder = Path(folder).resolve()

    def fetch(self, visit: fyke.Visit, address: str, done: Callable[[fyke.Exchange], None]) -> None:
        now, file = time.time(), self._file(visit.url)
        if file is None:
            status, outcome, body, kind = "404 Not Found", fyke.Outcome.CLIENT_ERROR, b"", "text/plain"
        else:
            status, outcome, body = "200 OK", fyke.Outcome.OK, file.read_bytes()
            kind = mimetypes.guess_type(file.name)[0] or "text/html"
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        spent = time.time() - now
        held = fyke.Document(body)
        done(fyke.Exchange(visit, outcome, now, spent, address, status=int(status[:3]), head=head, body=held))

    def _file(self, url: str) -> Path | None:
        parts = urlsplit(url)
        site = self.folder / (parts.hostname or "")
        file = (site / unquote(parts.path).lstrip("/")).resolve()
        file = file / "index.html" if file.is_dir() else file
        return file if file.is_file() and file.is_relative_to(site) else None


def main(mirror: str, url: str, into: str) -> None:
    with fyke.Crawl(url, into=into, protocols=[Mirror(mirror)]) as crawl:
        for page in crawl:
            print(page.url, page.title)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print("usage: python examples/protocol_module.py MIRROR URL FOLDER", file=sys.stderr)
        sys.exit(2)
    main(*sys.argv[1:])
