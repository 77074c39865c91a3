"""A page sink: every page as a line of JSON.

    python examples/page_sink.py http://example.org/ there pages.jsonl

or, for `fyke crawl` with `PYTHONPATH=examples`: `[plugins] sinks = ["page_sink:JsonLines"]`, which adds the lines to
`pages.jsonl` in the current folder. A page that is fetched again after a crash has two lines.
"""

import json
import sys

import fyke
from fyke import Page


class JsonLines:
    """A sink that adds a line for each page to the file at `path`."""

    def __init__(self, path: str = "pages.jsonl") -> None:
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115, PTH123 - closed by `close`

    def page(self, page: Page) -> None:
        row = {
            "url": page.url,
            "title": page.title,
            "media_type": page.media_type,
            "fetched_at": page.exchange.started_at,
            "text": page.tree.body.text(separator=" ", strip=True)
            if page.media_type == "text/html" and page.tree.body
            else page.text,
        }
        self._file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def close(self) -> None:
        self._file.close()


def main(url: str, into: str, path: str) -> None:
    with fyke.Crawl(url, into=into, sinks=[JsonLines(path)]) as crawl:
        for _ in crawl:
            pass


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print("usage: python examples/page_sink.py URL FOLDER FILE", file=sys.stderr)
        sys.exit(2)
    main(*sys.argv[1:])
