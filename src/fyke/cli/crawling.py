"""Commands for those who crawl: `crawl`, `status`, `why`, `block`, `unblock`, `cloak`, `check`."""

import asyncio
import shlex
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fyke.cli import rooms
from fyke.cli.app import AsJson, Folder, app
from fyke.cli.console import Reporter, print_json, say, say_aside
from fyke.core.choices import Scope
from fyke.core.errors import EXIT_INTERRUPTED, EXIT_NO_PAGE, ConfigurationError, Stopped

Host = Annotated[str, typer.Argument(help="A host, or a URL on it.", metavar="HOST")]


def _whole(text: str | None, option: str) -> int | None:
    """Return `300`, `20k` or `1M` as a number; None if `option` was not given."""
    return None if text is None else rooms.quantities.read_whole(option, text)


def _seconds(text: str | None, option: str, *, or_none: bool = False) -> float | None:
    """Return `90s`, `10m` or `2h` in seconds; None if `option` was not given."""
    return None if text is None else rooms.quantities.read_duration(option, text, or_none=or_none)


def _delays(delay_s: float) -> dict[str, Any]:
    """Return the settings of `--delay`: rests of hosts and addresses; with 0 none after slow downloads either."""
    names = ("host_delay_s", "address_delay_s", "min_host_delay_s", "min_address_delay_s")
    return dict.fromkeys(names, delay_s) | ({} if delay_s else {"delay_factor": 0.0})


@app.command()
def crawl(  # noqa: PLR0913 - one parameter an option
    urls: Annotated[list[str] | None, typer.Argument(help="URLs where the crawl begins.", metavar="URL...")] = None,
    into: Annotated[Path | None, typer.Option(help="The crawl's directory; if it holds a crawl, that goes on.")] = None,
    seeds: Annotated[
        list[str] | None,
        typer.Option(help="Also begin at the URLs in this file, see above; -: standard input.", metavar="FILE"),
    ] = None,
    scope: Annotated[
        Scope | None,
        typer.Option(help="Follow links within this part of the web; seeds: follow none.  [default: host]"),
    ] = None,
    pages: Annotated[str | None, typer.Option(help="Stop after this many pages: 300, 20k, 1M.")] = None,
    bytes_: Annotated[str | None, typer.Option("--bytes", help="Stop after this many bytes: 10GB, 500MB.")] = None,
    for_: Annotated[
        str | None, typer.Option("--for", help="Stop after this time, pauses included: 90s, 10m, 2h.")
    ] = None,
    wait: Annotated[
        str | None, typer.Option(help="Longest wait if all remaining hosts rest, or the disk is full.  [default: 1h]")
    ] = None,
    agents: Annotated[int | None, typer.Option(help="Number of processes that crawl.  [default: 1]", min=1)] = None,
    depth: Annotated[int | None, typer.Option(help="Follow links at most this many steps from a seed.", min=1)] = None,
    allow: Annotated[
        list[str] | None, typer.Option(help="Only URLs that match this RE2 expression, or another --allow.")
    ] = None,
    deny: Annotated[list[str] | None, typer.Option(help="No URLs that match this RE2 expression.")] = None,
    delay: Annotated[
        float | None,
        typer.Option(help="Seconds a host rests between requests; 0: no rests, for your own server.", min=0),
    ] = None,
    requisites: Annotated[
        bool | None, typer.Option("--requisites", help="Also fetch images, styles and scripts.")
    ] = None,
    rewrite: Annotated[
        Path | None,
        typer.Option(help="Rewrite links by the rules in this file, which fyke rewrite wrote.", metavar="FILE"),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A file of settings, written like a crawl's fyke.toml.")] = None,
    user_agent: Annotated[
        str | None, typer.Option(help="The crawler's name, also for the rules of robots.txt.")
    ] = None,
    contact: Annotated[
        str | None, typer.Option(help="URL or e-mail address for owners of sites, sent with every request.")
    ] = None,
    dns: Annotated[list[str] | None, typer.Option(help="Name server to ask: address or address:port.")] = None,
    private: Annotated[list[str] | None, typer.Option(help="A domain whose addresses may be private.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Visit all pages of a finished crawl once more.")] = False,
    visits: Annotated[
        str | None, typer.Option(help="With --again: only this many pages, the likeliest to have changed.")
    ] = None,
    revisit: Annotated[
        bool, typer.Option("--revisit", help="Never end: visit pages again when they are likely to have changed.")
    ] = False,
    metrics: Annotated[
        str | None, typer.Option(help="Serve metrics for Prometheus at this port or HOST:PORT.", metavar="PORT")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Crawl from the URLs, or go on with the crawl in the directory.

    Ctrl-C stops the crawl within a few seconds, a second Ctrl-C at once. Nothing is lost: the same command goes on.

    The file of --seeds is a list (a URL or host a line, # begins a comment), a sitemap, a CDXJ index, a WACZ file, or
    another crawl's directory. It may be packed with gzip. The pages of an archive or crawl become seeds. Hosts in a
    list need --private if their addresses are private.

    --scope is seeds, prefix (the folder of a seed), host, domain, or web (everything). A page that a seed redirects to
    counts as a seed.

    Exit status: 0 done, a limit reached, or stopped by SIGTERM, 1 agents failed again and again or can no longer be
    started (with --agents), 2 wrong usage, 3 the directory cannot be used, 4 the disk is full, 5 nothing could be
    reached, 6 no seed brought a page, 130 interrupted.
    """
    if into is None:
        rooms.seeds.seeds_of(urls or ())  # a seed that is not a URL is reported first
        raise ConfigurationError("no directory given: name the crawl's directory with --into DIR")
    asked: dict[str, dict[str, Any]] = {
        "crawl": {
            "seeds": urls or None, "scope": scope, "pages": _whole(pages, "--pages"), "for_s": _seconds(for_, "--for"),
            "wait_s": _seconds(wait, "--wait", or_none=True),
            "bytes": int(rooms.quantities.read_bytes("--bytes", bytes_)) if bytes_ is not None else None,
            "agents": agents, "depth": depth, "allow": allow, "deny": deny, "requisites": requisites,
            "rewrite": None if rewrite is None else str(rewrite.absolute()),
        },
        "agent": {"user_agent": user_agent, "contact": contact},
        "politeness": {} if delay is None else _delays(delay),
        "dns": {"servers": dns, "private": private},
    }  # fmt: skip
    directory = rooms.directory.CrawlDirectory(into)
    settings = _settings(directory, config, asked, listed=bool(seeds))
    console = Reporter(stderr=True)
    asked_pass = _pass(directory, _whole(visits, "--visits"), again=again, revisit=revisit)
    try:
        summary = rooms.run.crawl_with_panel(
            directory, settings, console, seeds or (), asked_pass=asked_pass, metrics=metrics
        )
    except Stopped:
        if as_json:
            print_json(rooms.run.stopped_before(directory).as_dict())
        raise
    if as_json:
        print_json(summary.as_dict())
    rooms.summary.report(summary, directory, console)
    if rooms.summary.brought_no_page(summary):
        first = directory.first_seed(settings)
        say_aside(f"no seed brought a page: check the URL; fyke why {directory.path} {first} says more")
        raise typer.Exit(EXIT_NO_PAGE)
    if summary.ending is rooms.loop.Ending.STOPPED and not (summary.already or summary.terminated):
        raise typer.Exit(EXIT_INTERRUPTED)


def _settings(
    directory: "rooms.directory.CrawlDirectory", config: Path | None, asked: dict[str, dict[str, Any]], *, listed: bool
) -> "rooms.config.Config":
    """Return the directory's settings, over them the file's, over them the options; `listed`: seeds are in a list."""
    values: dict[str, Any] = {}
    if directory.holds_crawl:
        rooms.lost.require_settings(directory)
        values = directory.config().model_dump(mode="json")
        values["crawl"]["for_s"] = 0
        _say_gone(directory.settings)
    in_file = rooms.config.read(config) if config else {}
    if config:
        _say_gone(config)
    rooms.config.build(in_file, str(config))  # checked by itself, so that messages name this file
    for name, section in in_file.items():
        if isinstance(section, dict):
            given = {key: value for key, value in section.items() if (name, key) != ("crawl", "seeds") or value}
            values.setdefault(name, {}).update(given)
        else:
            values[name] = section
    for name, options in asked.items():
        values.setdefault(name, {}).update({key: value for key, value in options.items() if value is not None})
    settings = rooms.config.build(values, "command line")
    if not (settings.crawl.seeds or listed or directory.listed):
        nothing = "nothing to crawl: give a URL, or the directory of a crawl to resume"
        raise ConfigurationError(directory.settings_gone or nothing)
    return settings


def _say_gone(path: Path) -> None:
    """Name the settings in the file at `path` that this version no longer has, if that changes anything."""
    if said := rooms.gone.said_of_gone(rooms.config.read(path), str(path)):
        say_aside(said)


def _pass(
    directory: "rooms.directory.CrawlDirectory", visits: int | None, *, again: bool, revisit: bool
) -> "rooms.passes.Pass | None":
    """Return the pass over known pages that is asked for, if any."""
    if visits is not None and not again:
        raise ConfigurationError("--visits is the number of pages that --again visits: give --again too")
    if again and not directory.holds_crawl:
        raise ConfigurationError(f"--again: {directory.path} holds no crawl yet; begin it without --again")
    if again and revisit:
        raise ConfigurationError("--again visits all pages once, --revisit each when it is due: give one of them")
    return rooms.passes.Pass(visits, forever=revisit) if again or revisit else None


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
    for outcome, count in sorted(crawled.outcomes.items(), key=lambda item: -item[1]):
        say(f"  {count:>10,}  {outcome.replace('_', ' ')}")
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
    crawled = rooms.directory.CrawlDirectory(directory)
    settings, into = crawled.config(), rooms.directory.CrawlDirectory(directory / rooms.owed.FOLDER)
    try:
        rooms.cloaking.turn_settings(settings, [], as_)
    except ConfigurationError as error:
        why = str(error).partition("cannot be used: ")[2]
        raise ConfigurationError(f"--as {as_!r} cannot be added to our name: {why}") from None
    with crawled.closed_to_crawls():  # a running crawl would ask the same hosts
        rooms.owed.take_over(crawled)
        with rooms.owed.may_be_asked(crawled) as may_be_asked:
            urls = rooms.cloaking.sample(directory, pages, may_be_asked)
        if not urls:
            left_out = "pages of blocked hosts, and of hosts that rest for long, do not count"
            raise ConfigurationError(f"{directory} has no pages to ask for again; {left_out}")
        if aside := rooms.owed.set_aside(into):
            say_aside(f"the earlier measurement was moved to {aside}")
        named = rooms.owed.named_urls(crawled, urls)
        with rooms.owed.owed(crawled, into, urls):
            if listed := [url for url in urls if url not in named]:
                into.listed.write(listed)
            for number, turn in enumerate(rooms.cloaking.TURNS):
                asked = rooms.cloaking.turn_settings(settings, named, as_ if turn == "named" else "")
                second = rooms.passes.Pass() if number else None
                done = rooms.run.crawl_with_panel(into, asked, Reporter(stderr=True), asked_pass=second)
                if done.ending is rooms.loop.Ending.STOPPED:
                    say_aside("stopped before all was measured; the same command measures anew")
                    raise typer.Exit(0 if done.terminated else EXIT_INTERRUPTED)
    shown = list(rooms.cloaking.pages_shown(into.path))
    if as_json:
        print_json({"pages": [page.as_dict() for page in shown]})
        return
    differing = [page for page in shown if page.differs]
    for page in differing:
        say(str(page))
    say(f"{directory}: {len(differing)} of {len(shown)} pages answer the two names differently")


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
        say(f"{directory}: {counted(progress.steps, 'record')} checked, {counted(len(faults), 'fault')}")
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
