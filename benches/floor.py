"""What does a page cost in native code alone, and what does Fyke take above that?

    .venv/bin/python benches/floor.py [WEB]... [--pages N]

One run, one core. Fyke crawls the web. Then bare libcurl fetches the same pages, one connection to a host, and each
necessary piece of work is done by itself, with the libraries that Fyke uses and nothing around them. The sum is the
floor of a crawler with these promises and these libraries. Beside it stands what other crawlers do instead: lexbor's
tree, a query on it, links joined one by one. Below it stands the CPU time of the crawl by rooms, as seen by
`sampling`. Archive and digests are counted as Fyke writes them; links as many as a page has.
"""

import argparse
import json
import os
import random
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha1
from pathlib import Path

import ada_url
import pycurl
import xxhash
from isal import isal_zlib
from peers import FYKE
from race import FetchedNothing, Run, adopt_orphans, run
from selectolax.lexbor import LexborCSSSelector, LexborDocumentOptions, LexborHTMLParser
from webs import made, size_of
from webs.alone import go_alone
from webs.known import WEBS
from webs.serving import CRAWLER_CORE, Served, served

from fyke.archive.records import BODY_LEVEL, GZIP
from fyke.core.resolve import LinkResolver
from fyke.harvest.links import scanned

_SAMPLE = 1_000  # pages for each piece of work
_AT_ONCE = 32
_PAUSE_S = 0.002  # in which a crawler would do other things, and data arrives
_ROUNDS = 3
HOLD_MS = 20
TREE = "lexbor's tree"
STAGES = {
    "fetcher/wire": "fetching",
    "fetcher": "politeness, robots, names",
    "harvest": "parsing",
    "core/resolve": "links resolved",
    "core/urls": "links resolved",
    "archive": "archive and tables",
    "frontier": "frontier",
    "disk": "frontier",
    "start": "start",
}


@dataclass(frozen=True, slots=True)
class Fetched:
    """A page as received."""

    url: str
    head: bytes
    body: bytes

    @property
    def packed(self) -> bool:
        return b"content-encoding: gzip" in self.head.lower()

    @property
    def content(self) -> bytes:
        return isal_zlib.decompress(self.body, GZIP) if self.packed else self.body


class Client:
    """Bare libcurl, with as little as possible around it."""

    def __init__(self, web: Served) -> None:
        self._ca = web.ca
        self._port = 443 if web.ca else 80
        self._addresses = web.addresses
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, 2 * len(web.addresses))

    def fetch(self, urls_of_hosts: Sequence[Sequence[str]], keep: set[str]) -> tuple[float, list[Fetched]]:
        """Fetch all, the URLs of a host one after the other; return CPU seconds and the pages of `keep`."""
        kept: list[Fetched] = []
        waiting = deque(deque(urls) for urls in urls_of_hosts)
        started, running = time.process_time(), 0
        while waiting or running:
            while waiting and running < _AT_ONCE:
                running += self._begin(waiting.popleft())
            self._multi.perform()
            _, fine, failed = self._multi.info_read()
            if failed:
                raise SystemExit(f"{failed[0][2]}: {failed[0][0].urls[0]}")
            for curl in fine:
                self._multi.remove_handle(curl)
                running -= 1
                url = curl.urls.popleft()
                if url in keep:
                    kept.append(Fetched(url, b"".join(curl.head), b"".join(curl.body)))
                if curl.urls:
                    running += self._begin(curl.urls, curl)
            if not fine:
                time.sleep(_PAUSE_S)
        return time.process_time() - started, kept

    def _begin(self, urls: deque[str], curl: pycurl.Curl | None = None) -> int:
        curl = curl or self._handle()
        curl.urls, curl.head, curl.body = urls, [], []
        curl.setopt(pycurl.URL, urls[0])
        host = urls[0].split("/")[2]
        curl.setopt(pycurl.CONNECT_TO, [f"::{self._addresses[host]}:{self._port}"])
        curl.setopt(pycurl.WRITEFUNCTION, curl.body.append)
        curl.setopt(pycurl.HEADERFUNCTION, curl.head.append)
        self._multi.add_handle(curl)
        return 1

    def _handle(self) -> pycurl.Curl:
        curl = pycurl.Curl()
        curl.setopt(pycurl.BUFFERSIZE, 128 << 10)
        curl.setopt(pycurl.HTTPHEADER, ["Accept-Encoding: gzip"])
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
        if self._ca:
            curl.setopt(pycurl.CAINFO, self._ca)
        return curl


def microseconds(work: Callable[[Fetched], object], pages: Sequence[Fetched]) -> float:
    """Return CPU µs a page, the best of `_ROUNDS` rounds."""
    best = float("inf")
    for _ in range(_ROUNDS):
        started = time.process_time()
        deque(map(work, pages), 0)
        best = min(best, time.process_time() - started)
    return best / len(pages) * 1e6


def parts(pages: Sequence[Fetched]) -> dict[str, float]:
    """Return the CPU a page of each necessary piece of work on `pages`."""
    contents = {page.url: page.content for page in pages}
    links = {page.url: sorted(outgoing(contents[page.url])) for page in pages}
    mean = sum(map(len, links.values())) / len(pages)
    resolver = LinkResolver()

    def archived(page: Fetched) -> object:
        block = page.head + page.body
        return isal_zlib.crc32(block) if page.packed else isal_zlib.compress(block, BODY_LEVEL, GZIP)

    measured = {
        "fingerprint (xxh3)": microseconds(lambda page: xxhash.xxh3_64_intdigest(contents[page.url]), pages),
        "links found without a tree": microseconds(lambda page: scanned(contents[page.url], "fyke"), pages),
        f"{mean:.0f} of them joined, keys hashed": microseconds(
            lambda page: resolver.resolve([(page.url, links[page.url])]), pages
        ),
        "SHA-1, once": microseconds(lambda page: sha1(page.body, usedforsecurity=False), pages),
        f"gzip, level {BODY_LEVEL}, of what did not come compressed; a CRC of the rest": microseconds(archived, pages),
    }
    if any(page.packed for page in pages):
        measured = {"inflate": microseconds(lambda page: isal_zlib.decompress(page.body, GZIP), pages)} | measured
    return measured


def elsewhere(pages: Sequence[Fetched]) -> dict[str, float]:
    """Return the CPU a page of other crawlers' ways to get the links of `pages`."""
    contents = {page.url: page.content for page in pages}
    links = {page.url: sorted(outgoing(contents[page.url])) for page in pages}
    selector = LexborCSSSelector()

    def tree(page: Fetched) -> LexborHTMLParser:
        return LexborHTMLParser(contents[page.url], options=LexborDocumentOptions.WO_EVENTS)

    def hrefs(page: Fetched) -> list[dict[str, str | None]]:
        return [node.attributes for node in selector.find("a[href]", tree(page).root)]

    def joined(page: Fetched) -> list[int]:
        found = [ada_url.join_url(page.url, href) for href in links[page.url]]
        return [xxhash.xxh3_64_intdigest(url.encode()) for url in found]

    only_tree = microseconds(tree, pages)
    return {
        TREE: only_tree,
        "every href by CSS": microseconds(hrefs, pages) - only_tree,
        "links joined by ada one by one, keys hashed": microseconds(joined, pages),
    }


def outgoing(content: bytes) -> set[str]:
    """Return the links that lead out of a page, as written."""
    nodes = LexborHTMLParser(content).css("a[href]")
    hrefs = {node.attributes["href"] or "" for node in nodes}
    return {href for href in hrefs if href and not href.startswith(("#", "javascript:", "mailto:"))}


def stages(modules: dict[str, float], pages: int) -> Counter[str]:
    """Return the CPU a page by rooms, from the samples by modules."""
    spent: Counter[str] = Counter()
    for module, seconds in modules.items():
        places = [module[: len(prefix)] for prefix in STAGES if module == prefix or module.startswith(prefix + "/")]
        spent[STAGES[max(places, key=len)] if places else "the loop, and between the rooms"] += seconds / pages * 1e6
    return spent


def rows(title: str, figures: Iterable[tuple[str, float]], whole: float) -> str:
    """Return a table in Markdown."""
    lines = [f"| {title} | µs a page | share |", "|---|---:|---:|"]
    return "\n".join([*lines, *(f"| {name} | {figure:,.0f} | {figure / whole:.0%} |" for name, figure in figures)])


def crawled(web: Served, most: int, longest_s: float) -> tuple[Run, Counter[str], list[float]]:
    """Crawl with Fyke; return the run, its CPU a page by rooms, and the longest times (ms) that pages held its loop."""
    with tempfile.NamedTemporaryFile() as noted:
        sampling = [str(Path(__file__).with_name("sampling.py")), noted.name]
        watched = replace(FYKE, command=lambda course: [*sampling, *FYKE.command(course)[2:]])
        crawl = run(watched, web, most, longest_s)
        said = Path(noted.name).read_bytes()
        if not said:
            raise SystemExit(f"the crawl of {web.web.name} took more than {longest_s:g} s: give --seconds or --pages")
        sampled = json.loads(said)
    spent = stages(sampled["modules"], crawl.tally.pages)
    spent["other threads"] = sampled["threads"] / crawl.tally.pages * 1e6
    return crawl, spent, sampled["holds_ms"]


def bare(web: Served, crawl: Run) -> tuple[dict[str, float], list[Fetched]]:
    """Return the CPU a page of fetching the pages of `crawl`, and some of these pages."""
    scheme, pages = "https" if web.ca else "http", len(crawl.urls)
    by_host: dict[str, list[str]] = {}
    for url in crawl.urls:
        by_host.setdefault(url.partition("/")[0], []).append(f"{scheme}://{url}")
    client = Client(web)
    greeted_s, _ = client.fetch([[f"{scheme}://{host}/robots.txt"] for host in by_host], set())
    chosen = random.Random(1).sample([url for urls in by_host.values() for url in urls], min(_SAMPLE, pages))
    fetched_s, kept = client.fetch(list(by_host.values()), set(chosen))
    each = greeted_s / len(by_host) * 1e6
    return {
        f"{len(by_host):,} hosts, a connection and a robots.txt each ({each:,.0f} µs)": greeted_s / pages * 1e6,
        "fetching, by bare libcurl": fetched_s / pages * 1e6,
    }, kept


def measure(web: Served, most: int, longest_s: float) -> None:
    """Crawl, do each piece of work by itself, and print both."""
    crawl, spent, holds_ms = crawled(web, most, longest_s)
    fetching, kept = bare(web, crawl)
    floor, others = fetching | parts(kept), elsewhere(kept)
    told, total, least = crawl.tally, crawl.cpu_us, sum(floor.values())
    size = sum(len(page.content) for page in kept) / len(kept) / 1000
    print(
        f"\n{web.web.name}: {told.pages:,} pages of {size:.0f} KB, {crawl.peak_bytes / 1e6:,.0f} MB of memory at most."
    )
    print(f"Fyke takes {total / others[TREE]:.1f} times as long as lexbor takes for the trees of the same pages.")
    print(f"It made {told.connections:,} connections, {told.resumed:,} of which took up an earlier session.")
    long = sum(held > HOLD_MS for held in holds_ms)
    print(f"Of all pages one held the loop for {max(holds_ms):.1f} ms at most, and {long} for over {HOLD_MS} ms.\n")
    print(rows("the floor", [*floor.items(), ("**sum**", least), ("**Fyke**", total), ("ours", total - least)], total))
    print("\n" + rows("elsewhere", others.items(), total))
    print("\n" + rows("Fyke, by rooms", spent.most_common(), total))


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("webs", nargs="*", choices=[*WEBS, []], metavar="WEB", help=", ".join(WEBS))
    parser.add_argument("--pages", type=int, help="crawl a web of so many")
    parser.add_argument("--seconds", type=float, default=600, help="the longest that a crawl may take")
    parser.add_argument("--into", type=Path, help="where webs are kept")
    return parser.parse_args()


def main() -> None:
    wanted = asked()
    webs = [WEBS[name] for name in wanted.webs or ("plain", "today")]
    folders = {web: made(web, size_of(web, wanted.pages), wanted.into) for web in webs}
    go_alone()
    adopt_orphans()
    os.sched_setaffinity(0, {CRAWLER_CORE})
    for web, made_in in folders.items():
        with tempfile.TemporaryDirectory() as name, served(web, made_in, Path(name)) as up:
            try:
                measure(up, wanted.pages or web.pages, wanted.seconds)
            except FetchedNothing as failure:
                raise SystemExit(str(failure)) from None


if __name__ == "__main__":
    main()
