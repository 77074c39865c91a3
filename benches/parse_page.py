"""What a page costs: `Parser.parse` against lexbor's tree alone, on a made page and on real ones.

python benches/parse_page.py [folder of HTML files]
"""

import sys
import timeit
from collections import deque
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

from fyke.core.outcomes import Outcome
from fyke.core.urls import locate
from fyke.core.visits import Exchange, Visit
from fyke.harvest import Parser

FOLDER = Path("/usr/share/doc/python3.11/html")
HEAD = b"HTTP/1.1 200 OK\r\nServer: x\r\nDate: today\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"


def made_page(links: int = 60, size_bytes: int = 21_000) -> bytes:
    """A page of `size_bytes` with `links` links and words between them."""
    head = (
        "<!doctype html><html><head><meta charset=utf-8><title>A page</title><link rel=canonical href=/x></head><body>"
    )
    words = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor " * 5
    parts = [f'<a href="/section/{n}/page{n * 7}.html">link {n}</a> <p class=x>{words[:300]}</p>' for n in range(links)]
    text = head + "".join(parts)
    return (text + "<p>" + "words " * ((size_bytes - len(text)) // 6)).encode()


def compare(name: str, pages: list[bytes], rounds: int) -> None:
    """Print microseconds a page."""
    url = "http://www.example.com/a/b.html"
    at = locate(url)
    exchange = Exchange(Visit(url, at.key, at.host, at.domain), Outcome.OK, 0.0, 0.0, status=200, head=HEAD)
    plain, all_of_it = Parser(), Parser(requisites=True)
    ways = {
        "lexbor's tree alone": lambda page: LexborHTMLParser(page),
        "first step (page_of)": lambda page: plain.page_of(exchange, page),
        "Parser.parse": lambda page: plain.parse(exchange, page),
        "with requisites": lambda page: all_of_it.parse(exchange, page),
    }
    size = sum(map(len, pages)) / len(pages) / 1000
    print(f"\n{name}: {len(pages)} pages of {size:.0f} KB, µs a page")
    for way, action in ways.items():
        best = min(timeit.repeat(lambda action=action: deque(map(action, pages), 0), number=1, repeat=rounds))  # type: ignore[misc]
        print(f"  {way:24}{best / len(pages) * 1e6:10.1f}")


def main() -> None:
    compare("made", [made_page()] * 200, 15)
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    files = [file for file in sorted(folder.rglob("*.html")) if file.is_file()]
    if files:
        compare(str(folder), [file.read_bytes() for file in files], 3)


if __name__ == "__main__":
    main()
