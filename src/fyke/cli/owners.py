"""Commands for those who have a crawl and look after it: `status`, `why`, `block`, `unblock`, `cloak`, `check`."""

import asyncio
import shlex
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fyke.cli import rooms
from fyke.cli.app import AsJson, Folder, app
from fyke.cli.console import Reporter, print_json, say, say_aside
from fyke.core.errors import EXIT_INTERRUPTED, ConfigurationError

Host = Annotated[str, typer.Argument(help="A host, or a URL on it.", metavar="HOST")]


@app.command()
def status(directory: Folder, as_json: AsJson = False) -> None:
    """Show how a crawl stands, running or not."""
    now = asyncio.run(rooms.orders.current_status(rooms.directory.CrawlDirectory(directory)))
    if as_json:
        print_json(now.as_dict())
        return
    crawled, words = now.statistics, rooms.quantities
    say(f"{directory}: {_how_it_stands(now, directory)}")
    say(
        f"  {words.counted(crawled.pages, 'page')}, {words.size(crawled.bytes)} in {words.duration(crawled.total_s)};"
        f" {words.counted(crawled.waiting, 'URL')} to fetch, {crawled.urls:,} seen"
    )
    for line in rooms.summary.passes(crawled):
        say(line)
    for line in _what_waits(now, directory):
        say(f"  {line}")
    for line in rooms.summary.outcomes(crawled, crawled.outcomes):
        say(line)
    listings = [f"  {crawled.listings:>10,}  sitemaps and feeds read"] * bool(crawled.listings)
    deaths = [f"  {told}" for told in rooms.monitor.deaths_in_words(crawled.deaths)]
    for line in (*rooms.summary.rewriting(crawled), *listings, *deaths):
        say(line)


def _what_waits(now: "rooms.inspect.CrawlStatus", directory: Path) -> Iterator[str]:
    """Yield what URLs wait for, a line each."""
    crawled, config = now.statistics, rooms.directory.CrawlDirectory(directory).config()
    if hours := rooms.hours.HostHours(config.politeness.hours, config.site).in_words:
        yield f"hosts are asked in these hours of the day: {hours}"
    if now.state == "running" and (rest := rooms.monitor.resting(crawled, time.time())):
        yield rest
    if crawled.over_budget or crawled.without_rules:
        yield (
            f"of the waiting URLs, {crawled.over_budget:,} are over their domain's budget,"
            f" {crawled.without_rules:,} lack their host's robots.txt"
        )
    if traps := crawled.queues.get("traps", 0):
        yield f"of the waiting URLs, {traps:,} come last: pages with URLs like them had no new text (fyke why URL)"
    if crawled.blocked:
        yield f"of the waiting URLs, {crawled.blocked:,} are on blocked hosts"
    if now.blocked_hosts:
        yield f"blocked: {now.blocked_hosts}; fyke unblock {directory} HOST unblocks one"


def _how_it_stands(now: "rooms.inspect.CrawlStatus", directory: Path) -> str:
    words = rooms.monitor.ENDED.get(now.state, now.state)
    if now.state == "killed":
        words = f"broke off: {now.error}" if now.error else "broke off without a message, as a killed process does"
    if now.state in ("running", "finished"):
        return words
    more = f" --{now.state} MORE" if now.state in ("pages", "bytes") else ""
    return f"{words}; fyke crawl --into {shlex.quote(str(directory))}{more} goes on"


@app.command()
def why(
    directory: Folder,
    url: Annotated[str, typer.Argument(help="A URL, whether it was fetched or not.", metavar="URL")],
    as_json: AsJson = False,
) -> None:
    """Say what happened to a URL, and why."""
    answer = rooms.explain.why(rooms.directory.CrawlDirectory(directory), url)
    if as_json:
        print_json(asdict(answer))
        return
    say(answer.verdict)
    for fact in answer.facts:
        say(f"  {fact}")


@app.command()
def block(directory: Folder, host: Host) -> None:
    """Stop requests to a host. Its URLs wait, whether the crawl runs or not."""
    say(asyncio.run(rooms.orders.block(rooms.directory.CrawlDirectory(directory), host, blocked=True)))


@app.command()
def unblock(directory: Folder, host: Host) -> None:
    """Go on with a host that was blocked. Its URLs that waited are fetched."""
    say(asyncio.run(rooms.orders.block(rooms.directory.CrawlDirectory(directory), host, blocked=False)))


@app.command()
def cloak(
    directory: Folder,
    as_: Annotated[str, typer.Option("--as", help="Name to add to the crawler's own.", metavar="NAME")],
    pages: Annotated[int, typer.Option(help="Number of pages to ask for, chosen at random.", min=1, max=1000)] = 20,
    as_json: AsJson = False,
) -> None:
    """Measure whether servers show other clients something else. It fetches a few pages of a crawl again, by turns
    under the crawler's own name and with another name added, such as
    --as "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0".

    It asks for each page four times, as gently as the crawl did, and only if robots.txt allows it. It leaves out pages
    of hosts that are blocked or rest for long. A difference is reported if both turns under a name show it. No crawl
    may run in DIR. All answers are archived in DIR/cloaking, a crawl of its own. An earlier measurement, also one that
    broke off, becomes DIR/cloaking-001 and so on. The crawler's own name is always sent. So the measurement does not
    find servers that look at addresses, or that show something else only if that name is missing. Fyke does not use the
    result.

    Exit status: 0 measured, or stopped by SIGTERM, 130 interrupted.
    """
    crawled, measured = (rooms.directory.CrawlDirectory(path) for path in (directory, directory / rooms.owed.FOLDER))
    _check_name(crawled, as_)
    with crawled.closed_to_crawls():  # a running crawl would ask the same hosts
        rooms.owed.take_over(crawled)
        urls = _drawn(crawled, pages)
        if aside := rooms.owed.set_aside(measured):
            say_aside(f"the earlier measurement was moved to {aside}")
        _ask_by_turns(crawled, measured, urls, as_)
    shown = list(rooms.cloaking.pages_shown(measured.path))
    if as_json:
        print_json({"pages": [page.as_dict() for page in shown]})
        return
    differing = [page for page in shown if page.differs]
    for page in differing:
        say(str(page))
    say(f"{directory}: {len(differing)} of {len(shown)} pages answer the two names differently")


def _check_name(crawled: "rooms.directory.CrawlDirectory", name: str) -> None:
    """Refuse a `name` that cannot be added to the crawler's own, or would add nothing."""
    if not name.strip():
        raise ConfigurationError("--as is empty: name the client to measure with, such as the User-Agent of a browser")
    try:
        rooms.cloaking.turn_settings(crawled.config(), [], name)
    except ConfigurationError as error:
        why = str(error).partition("cannot be used: ")[2]
        raise ConfigurationError(f"--as {name!r} cannot be added to our name: {why}") from None


def _drawn(crawled: "rooms.directory.CrawlDirectory", pages: int) -> list[str]:
    """Return the URLs of `pages` pages to ask for again, drawn at random."""
    with rooms.owed.may_be_asked(crawled) as may_be_asked:
        urls = rooms.cloaking.sample(crawled.path, pages, may_be_asked)
    if not urls:
        left_out = "pages of blocked hosts, and of hosts that rest for long, do not count"
        raise ConfigurationError(f"{crawled.path} has no pages to ask for again; {left_out}")
    return urls


def _ask_by_turns(
    crawled: "rooms.directory.CrawlDirectory", measured: "rooms.directory.CrawlDirectory", urls: list[str], name: str
) -> None:
    """Ask for `urls` by turns under our own name and with `name` added, in a crawl of their own at `measured`."""
    settings, named = crawled.config(), rooms.owed.named_urls(crawled, urls)
    with rooms.owed.owed(crawled, measured, urls):
        if listed := [url for url in urls if url not in named]:
            measured.listed.write(listed)
        for number, turn in enumerate(rooms.cloaking.TURNS):
            asked = rooms.cloaking.turn_settings(settings, named, name if turn == "named" else "")
            again = rooms.passes.Pass() if number else None
            done = rooms.run.crawl_with_panel(measured, asked, Reporter(stderr=True), asked_pass=again)
            if done.ending is rooms.loop.Ending.STOPPED:
                say_aside("stopped before all was measured; the same command measures anew")
                raise typer.Exit(0 if done.terminated else EXIT_INTERRUPTED)


@app.command()
def check(
    directory: Folder,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired, and name the rest.")] = False,
    as_json: AsJson = False,
) -> None:
    """Verify checkpoint, tables and every archived record. It names the place of each fault.

    --repair makes damaged tables and indexes again out of the archive, and sets the crawl back to its newest whole
    checkpoint. It keeps damaged files in DIR/damaged. If it is killed, the same command goes on.

    Exit status: 0 all is whole, 1 there are faults. With --repair: 0 all is repaired, 1 something is lost.
    """
    if repair:
        _repair(directory, as_json=as_json)
        return
    with rooms.progress.Progress(Reporter(stderr=True), "checking") as progress:
        crawled = rooms.directory.CrawlDirectory(directory)
        faults = list(rooms.inspect.check_crawl(crawled, partial(progress.tell, unit="bytes")))
        faults += rooms.damage.index_faults(directory)
    if as_json:
        print_json({"faults": [{"place": fault.place, "what": fault.what} for fault in faults]})
    else:
        for fault in faults:
            say(f"{fault.place}: {fault.what}")
        counted = rooms.quantities.counted
        copy = "a copy, without the crawl's state; " if crawled.is_copy else ""
        say(f"{directory}: {copy}{counted(progress.steps, 'record')} checked, {counted(len(faults), 'fault')}")
    if faults:
        raise typer.Exit(1)


def _repair(directory: Path, *, as_json: bool) -> None:
    notes = []
    with rooms.progress.Progress(Reporter(stderr=True), "reading the archive") as progress:
        crawled = rooms.directory.CrawlDirectory(directory)
        for note in rooms.repair.repair(crawled, partial(progress.tell, unit="bytes")):
            notes.append(note)
            if not as_json:
                say(f"{note.place}: {'LOST: ' if note.lost else ''}{note.what}")
    lost = sum(note.lost for note in notes)
    if as_json:
        print_json({"notes": [note._asdict() for note in notes]})
    elif notes:
        again = "what came after the checkpoint is fetched again" if any(note.again for note in notes) else ""
        but = f"{rooms.quantities.counted(lost, 'thing')} {'is' if lost == 1 else 'are'} lost" if lost else ""
        say(f"{directory}: repaired; {', '.join(filter(None, (but, again))) or 'nothing is lost'}")
    else:
        say(f"{directory}: {progress.steps:,} records, tables and checkpoint are whole; there was nothing to repair")
    if lost:
        raise typer.Exit(1)
