"""What a crawl owes its hosts if another crawl asks them next.

`fyke cloak` measures in a directory of its own, with its own journal of rests and host book. Its hosts rest at first as
in the crawl whose pages it asks for; afterwards those of the crawl rest as the measurement left them. Called by the
command line, while the crawl's directory is closed to crawls, and by a crawl that begins.

What the crawl knows of private addresses goes over too: which hosts a person named (`named_urls`), and which names were
public and may not become private.

Invariant: a host or address that both ask is asked by each no sooner than the other could. If the measurement is
killed, the crawl finds no journal of rests: every host rests, and it takes long rests over itself (`take_over`).
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

from fyke.archive.asked import AskedLater, all_seeds
from fyke.archive.directory import CrawlDirectory, crawl_clock
from fyke.archive.lost import require_asked
from fyke.core.clock import Clock, SystemClock
from fyke.core.config import Config
from fyke.core.rests import SOON_S
from fyke.core.urls import split
from fyke.disk.files import writing
from fyke.fetcher.addresses import is_public
from fyke.fetcher.book import HostBook
from fyke.fetcher.chosen import Chosen
from fyke.fetcher.rests import Rests
from fyke.fetcher.shared_book import ReadBooks

FOLDER = "cloaking"  # of the measurement, in the crawl's directory


@contextmanager
def may_be_asked(directory: CrawlDirectory) -> Iterator[Callable[[str], bool]]:
    """Provide a function that tells if the host of a URL may be asked now: no person blocked it, and it does not rest
    for long. Raises StateDamaged if that is not known."""
    require_asked(directory)
    now, blocked = crawl_clock(directory).now(), frozenset(AskedLater(directory.state).blocked)
    with ReadBooks(directory.host_books) as books:

        def asked(url: str) -> bool:
            name = split(url).host
            host = None if name in blocked else books.host(name)
            return name not in blocked and (host is None or host.due <= now + SOON_S)

        yield asked


def named_urls(crawled: CrawlDirectory, urls: list[str]) -> list[str]:
    """Return those of `urls` at a host and port that a person named for the crawl. The others were found on strangers'
    pages, so their hosts may not be private in the measurement either."""
    config = crawled.config()
    chosen = Chosen(all_seeds(crawled.state, config), config.dns.private)
    return [url for url in urls if chosen.port(split(url))]


def set_aside(measured: CrawlDirectory) -> Path | None:
    """Rename an earlier measurement, whole or broken off, to a free number; return its new path, None if there is none.
    Called after `take_over`. Raises DiskFull or DirectoryError."""
    if not os.path.lexists(measured.path):
        return None
    named = (measured.path.with_name(f"{FOLDER}-{number:03}") for number in count(1))
    free = next(path for path in named if not os.path.lexists(path))
    with writing(free):
        measured.path.rename(free)
    return free


@contextmanager
def owed(crawled: CrawlDirectory, beside: CrawlDirectory, urls: Iterable[str]) -> Iterator[None]:
    """Have hosts rest in the new crawl `beside` as they do in `crawled`, and in `crawled` as in `beside` when the block
    ends. Blocked hosts are blocked there. Names in `urls`, the pages of `beside`, that were public stay so: they may
    not become private there."""
    config, clock, other_clock = crawled.config(), crawl_clock(crawled), SystemClock()
    dues, public = _dues(crawled.parts, config, clock)
    public |= _public_in_books(crawled, urls)
    with writing(beside.state):
        beside.state.mkdir(parents=True)
        asked = AskedLater(beside.state)
        for host in AskedLater(crawled.state).blocked:
            asked.block(host, blocked=True)
        later = {name: due + clock.wall_ahead_s for name, due in dues.items()}
        _note([beside], later, public, config, other_clock)
        for part in crawled.parts:
            part.rests.unlink(missing_ok=True)
    try:
        yield
    finally:
        take_over(crawled)
        met, met_public = _dues([beside], config, other_clock)
        dues |= {name: due - clock.wall_ahead_s for name, due in met.items()}
        _note(crawled.parts, dues, public | met_public, config, clock)


def take_over(crawled: CrawlDirectory) -> None:
    """Copy how long hosts rest from a measurement into the host books of `crawled`, unless a crawl ran since.

    Raises StateDamaged, DiskFull or DirectoryError.
    """
    measured = CrawlDirectory(crawled.path / FOLDER).hosts
    if crawled.rests.exists() or not measured.is_file():
        return
    clock = crawl_clock(crawled)
    with closing(HostBook(measured)) as book:  # created if a kill left it empty
        late = [replace(host, due=host.due - clock.wall_ahead_s, pages=0) for host in book.hosts()]
    late = [host for host in late if host.due > clock.now()]
    for part in crawled.parts if late else ():
        with closing(HostBook(part.hosts)) as book:
            known = [(book.host(other.name), other.due) for other in late]
            book.save_hosts(replace(host, due=max(host.due, due)) for host, due in known if host)
            unknown = [other for other, (host, _) in zip(late, known, strict=True) if not host]
            if not part.part:
                book.save_hosts(unknown)


def _public_in_books(crawled: CrawlDirectory, urls: Iterable[str]) -> set[str]:
    """Return the hosts of `urls` that were public when they were last looked up, by the host books."""
    with ReadBooks(crawled.host_books) as books:
        hosts = filter(None, (books.host(name) for name in {split(url).host for url in urls}))
        return {host.name for host in hosts if any(map(is_public, host.addresses))}


def _dues(of: Sequence[CrawlDirectory], config: Config, clock: Clock) -> tuple[dict[str, float], set[str]]:
    """Return until when each name rests, and which were public, by the journals of `of`."""
    dues: dict[str, float] = {}
    public: set[str] = set()
    for each in of:
        with _opened(each, config, clock) as rests:
            public |= rests.public
            for name, due in rests.dues():
                dues[name] = max(due, dues.get(name, 0.0))
    return dues, public


def _note(to: Sequence[CrawlDirectory], dues: dict[str, float], public: set[str], config: Config, clock: Clock) -> None:
    """Write `dues`, the names that were `public`, and how often host books were written, into the journals of `to`."""
    for each in to:
        with _opened(each, config, clock) as rests:
            rests.end(dues.items(), clock.now())
            rests.note_public(public, clock.now())
            if each.hosts.is_file():
                with closing(HostBook(each.hosts)) as book:
                    rests.note_book(book.writes, clock.now())


def _opened(directory: CrawlDirectory, config: Config, clock: Clock) -> closing[Rests]:
    return closing(Rests(directory.rests, config.politeness, config.fetch.timeout_s, clock.now(), resumed=False))
