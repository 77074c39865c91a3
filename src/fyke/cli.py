"""What does a person type? The command line.

Each command gathers what was asked, calls one room, and prints. A `FykeError` becomes one line on
stderr and its exit status; anything else is our own mistake and shows itself. What only one command needs
is imported by it, so that the others begin sooner.
"""

import errno
import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn, TextIO

import typer
from rich.console import Console

from fyke import __version__
from fyke.core.config import Config, Scope, build, read
from fyke.core.errors import ConfigurationError, DirectoryError, DiskFull, FykeError
from fyke.crawl.directory import CrawlDirectory
from fyke.crawl.loop import Ending
from fyke.crawl.monitor import duration, size
from fyke.crawl.run import EXIT_INTERRUPTED, crawl_with_panel
from fyke.crawl.run import report as say_how_it_ended

app = typer.Typer(
    help="A polite, crash-safe web crawler with bounded memory.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
Folder = Annotated[Path, typer.Argument(help="The directory of a crawl.", metavar="DIR")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]

# Since 0.20-odd typer carries click inside under a private name; its public class leads to the one we need.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

EXIT_PIPE_CLOSED = 141

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text: str) -> float:
    """`90`, `90s`, `10m`, `2h` or `1d` in seconds."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        value = float(number) * _UNITS[unit]
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise ConfigurationError(f"--for {text}: not a duration; say 90s, 10m or 2h")
    return value


@app.command()
def crawl(  # noqa: PLR0913 - one parameter an option
    urls: Annotated[list[str] | None, typer.Argument(help="Where to begin.", metavar="URL...")] = None,
    into: Annotated[Path | None, typer.Option(help="The crawl's directory; the same again resumes it.")] = None,
    scope: Annotated[
        Scope | None,
        typer.Option(help="How far from the seeds, and what they redirect to, to follow.  [default: host]"),
    ] = None,
    pages: Annotated[int | None, typer.Option(help="Stop after so many pages.", min=1)] = None,
    for_: Annotated[str | None, typer.Option("--for", help="Stop after a time: 90s, 10m, 2h.")] = None,
    depth: Annotated[int | None, typer.Option(help="Follow links so many steps from a seed.", min=1)] = None,
    allow: Annotated[list[str] | None, typer.Option(help="Only URLs matching this RE2 expression.")] = None,
    deny: Annotated[list[str] | None, typer.Option(help="No URLs matching this RE2 expression.")] = None,
    requisites: Annotated[bool | None, typer.Option("--requisites", help="Fetch images, styles, scripts too.")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings, as in a crawl's fyke.toml.")] = None,
    user_agent: Annotated[str | None, typer.Option(help="Our name, also in robots.txt.")] = None,
    contact: Annotated[str | None, typer.Option(help="URL or e-mail for owners of sites.")] = None,
    dns: Annotated[list[str] | None, typer.Option(help="Name server, address or address:port.")] = None,
    private: Annotated[list[str] | None, typer.Option(help="A domain whose addresses may be private.")] = None,
    as_json: AsJson = False,
) -> None:
    """Crawl, beginning at the URLs; or go on with the crawl in the directory.

    Ctrl-C stops within a few seconds, a second one at once; the same command goes on, and nothing is lost.

    Exit status: 0 done or a limit reached, 2 wrong usage, 3 the directory cannot be used, 4 the disk is full,
    5 nothing could be reached, 130 interrupted.
    """
    if into is None:
        raise ConfigurationError("where to? give the crawl's directory with --into DIR")
    asked: dict[str, dict[str, Any]] = {
        "crawl": {
            "seeds": urls or None, "scope": scope, "pages": pages, "for_s": seconds(for_) if for_ else None,
            "depth": depth, "allow": allow, "deny": deny, "requisites": requisites,
        },
        "agent": {"user_agent": user_agent, "contact": contact},
        "dns": {"servers": dns, "private": private},
    }  # fmt: skip
    directory = CrawlDirectory(into)
    settings = _settings(directory, config, asked)
    console = Reporter(stderr=True)
    summary = crawl_with_panel(directory, settings, console)
    if as_json:
        print_json(summary.as_dict())
    say_how_it_ended(summary, directory, console)
    if summary.ending is Ending.STOPPED and not summary.already:
        raise typer.Exit(EXIT_INTERRUPTED)


def _settings(directory: CrawlDirectory, config: Path | None, asked: dict[str, dict[str, Any]]) -> Config:
    """What the directory already holds, over it the file, over it the options."""
    values: dict[str, Any] = {}
    if directory.holds_crawl:
        values = directory.config().model_dump(mode="json")
        values["crawl"]["for_s"] = 0
    in_file = read(config) if config else {}
    build(in_file, str(config))  # by itself, so that its mistakes bear its name
    for name, section in in_file.items():
        if isinstance(section, dict):
            given = {key: value for key, value in section.items() if (name, key) != ("crawl", "seeds") or value}
            values.setdefault(name, {}).update(given)
        else:
            values[name] = section
    for name, options in asked.items():
        values.setdefault(name, {}).update({key: value for key, value in options.items() if value is not None})
    settings = build(values, "command line")
    if not settings.crawl.seeds:
        raise ConfigurationError("nothing to crawl: give a URL, or the directory of a crawl to resume")
    return settings


@app.command()
def status(directory: Folder, as_json: AsJson = False) -> None:
    """How a crawl stands, running or not."""
    from fyke.crawl.inspect import status_of  # noqa: PLC0415 - see above

    now = status_of(CrawlDirectory(directory))
    if as_json:
        print_json(now.as_dict())
        return
    crawled = now.statistics
    say(f"{directory}: {now.state}")
    say(
        f"  {crawled.pages:,} pages, {size(crawled.bytes)} in {duration(crawled.total_s)};"
        f" {crawled.waiting:,} URLs wait, {crawled.urls:,} seen"
    )
    if crawled.over_budget or crawled.without_rules:
        say(
            f"  of those that wait, {crawled.over_budget:,} are over their domain's budget,"
            f" {crawled.without_rules:,} lack their host's robots.txt"
        )
    for outcome, count in sorted(crawled.outcomes.items(), key=lambda item: -item[1]):
        say(f"  {count:>10,}  {outcome.replace('_', ' ')}")


@app.command()
def why(directory: Folder, url: Annotated[str, typer.Argument(metavar="URL")], as_json: AsJson = False) -> None:
    """What happened to a URL, and why."""
    from fyke.crawl.explain import why as explain  # noqa: PLC0415 - see above

    answer = explain(CrawlDirectory(directory), url)
    if as_json:
        print_json(answer.as_dict())
        return
    say(answer.verdict)
    for fact in answer.facts:
        say(f"  {fact}")


@app.command()
def check(directory: Folder, as_json: AsJson = False) -> None:
    """Verify checkpoint, tables and every archived record; exit 1 with the place of each fault."""
    from fyke.crawl.inspect import Progress, check_crawl  # noqa: PLC0415 - see above

    with Progress(Reporter(stderr=True)) as progress:
        faults = list(check_crawl(CrawlDirectory(directory), progress.advance))
    if as_json:
        print_json({"faults": [{"place": fault.place, "what": fault.what} for fault in faults]})
    else:
        for fault in faults:
            say(f"{fault.place}: {fault.what}")
        say(f"{directory}: {progress.records:,} records checked, {len(faults)} faults")
    if faults:
        raise typer.Exit(1)


@app.command()
def index(
    directory: Folder,
    follow: Annotated[bool, typer.Option("--follow", help="Go on while the crawl runs.")] = False,
    memory_mb: Annotated[int, typer.Option(help="Memory for PageRank; with less it works on disk.", min=1)] = 1024,
    as_json: AsJson = False,
) -> None:
    """Make a crawl's pages searchable: what is new since the last time.

    It can be stopped at any time, and goes on where it was. Run it beside a crawl with --follow.
    """
    from fyke.search.following import index_with_status  # noqa: PLC0415 - see above

    console = Reporter(stderr=True)
    done = index_with_status(directory, console, follow=follow, links_memory_bytes=memory_mb << 20)
    if as_json:
        print_json(asdict(done))
    else:
        say(
            f"{directory}: {done.documents:,} pages can be found; {done.read:,} were read, {done.written:,} written,"
            f" {done.deleted:,} deleted"
        )
        say(f"Next: fyke search {directory} WORDS")


@app.command()
def search(
    directory: Folder,
    query: Annotated[list[str], typer.Argument(metavar="QUERY...", help="Words, and what is said above.")],
    limit: Annotated[int, typer.Option(help="How many pages to list.", min=1)] = 10,
    offset: Annotated[int, typer.Option(help="How many of the best to leave out.", min=0)] = 0,
    also: Annotated[list[Path] | None, typer.Option(help="Search this crawl too.", metavar="DIR")] = None,
    as_json: AsJson = False,
) -> None:
    """Which pages answer a query.

    Words, "phrases", +must, -not, this OR that, site:example.org, inurl:x, intitle:x, lang:en, after:2024-01-31,
    before:2025. Quote the query for the shell.

    Exit status: 0 something was found, 1 nothing was, 2 wrong usage, 3 there is no index.
    """
    from fyke.search.searcher import Searcher  # noqa: PLC0415 - see above
    from fyke.search.terminal import show  # noqa: PLC0415 - see above

    with Searcher([directory, *(also or [])]) as searcher:
        results = searcher.search(" ".join(query), offset, limit)
    if as_json:
        print_json(results.as_dict())
    else:
        show(results, Answers())
    if not results.hits:
        raise typer.Exit(1)


@app.command()
def report(
    directory: Folder,
    out: Annotated[Path | None, typer.Option(help="The HTML file.  [default: DIR/report.html]", metavar="FILE")] = None,
) -> None:
    """Describe a crawl, running or not, in one HTML file that can be mailed: figures, plots, hosts, domains."""
    from fyke.report import write_report  # noqa: PLC0415 - see above

    say(f"{write_report(directory, out, Reporter(stderr=True))}")


@app.command()
def export(
    directory: Folder,
    to: Annotated[str, typer.Option(help="See above.", metavar="FORMAT")],
    out: Annotated[
        Path | None, typer.Option(help="Where to; must not be there.  [default: in DIR/export]", metavar="PATH")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Text also of exact copies, and of pages that say noindex.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make of a crawl what other tools read, also while it runs. FORMAT is one of

    \b
    parquet   the table of pages with main text and language; a folder of files, or one if PATH ends in .parquet
    jsonl     a page a line: text, title, language, where from; packed if PATH ends in .gz
    markdown  a page a file: the main content under a front matter
    wacz      the whole archive in one file, for replay
    links     source, target, kind; a folder of Parquet files, or one .parquet, .tsv or .tsv.gz
    csv       the table of pages, without text

    Text is of HTML and plain text. jsonl and markdown hold of each URL the last answer, of exact copies the first, and
    no page that says noindex; parquet has a row for every visit, and text for all but exact copies. The others hold
    everything. In csv an apostrophe stands before what a spreadsheet would take for a formula.

    Killed at any moment, the same command goes on; PATH is there when all of it is.
    """
    from fyke.export import export as carry_out  # noqa: PLC0415 - see above
    from fyke.export import named  # noqa: PLC0415

    done = carry_out(directory, named(to), out, Reporter(stderr=True), everything=everything)
    if as_json:
        print_json(done.as_dict())
    else:
        say(str(done))


@app.command()
def serve(
    directories: Annotated[list[Path], typer.Argument(help="Directories of crawls.", metavar="DIR...")],
    port: Annotated[int, typer.Option(help="0: any that is free.", min=0, max=65535)] = 8080,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0: all of this machine's.")] = "127.0.0.1",
    token: Annotated[str | None, typer.Option(help="Word that commands to a crawl need.  [default: a new one]")] = None,
    as_json: AsJson = False,
) -> None:
    """Search, read the archive, and watch and steer crawls in a browser. Ctrl-C ends it.

    Several crawls are searched as one. /api is for programs, /metrics for Prometheus.
    """
    from fyke.serve import Serving  # noqa: PLC0415 - see above
    from fyke.serve import serve as serve_crawls  # noqa: PLC0415

    def ready(serving: Serving) -> None:
        if as_json:
            say(json.dumps(asdict(serving)))
        else:
            say(f"Search     {serving.url}\nDashboard  {serving.dashboard}\nCtrl-C ends it")

    serve_crawls(directories, host, port, token, ready)


@app.command()
def web(
    pages: Annotated[int, typer.Option(help="How many pages it has.", min=1)] = 3600,
    hosts: Annotated[int, typer.Option(help="On how many hosts.", min=1)] = 120,
    seed: Annotated[int, typer.Option(help="Which of all possible webs.")] = 1,
    plain: Annotated[bool, typer.Option("--plain", help="A web without faults and surprises.")] = False,
    port: Annotated[int, typer.Option(help="Its HTTP port; 0: any.", min=0, max=65535)] = 0,
    dns_port: Annotated[int, typer.Option(help="Its DNS port; 0: any.", min=0, max=65535)] = 0,
    ledger: Annotated[Path | None, typer.Option(help="Write every request it gets to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run the synthetic web on this machine, for any crawler to be pointed at. Ctrl-C ends it."""
    from fyke import simweb  # noqa: PLC0415 - see above

    kind = simweb.plain if plain else simweb.lively
    spec = kind(pages=pages, hosts=hosts, seed=seed, http_port=port, dns_port=dns_port)

    def ready(running: simweb.Web) -> None:
        if as_json:
            say(json.dumps({"seeds": running.seeds, "dns": running.dns}))
        else:
            say(running.welcome())

    try:
        simweb.serve(spec, ready, ledger)
    except OSError as error:
        raise ConfigurationError(f"the synthetic web cannot listen: {error.strerror}; choose another port") from None


@app.command()
def simulate(  # noqa: PLR0913 - one parameter an option
    into: Annotated[Path, typer.Option(help="Where to; the same command again goes on.", metavar="DIR")],
    policy: Annotated[str, typer.Option(help="star-beast, naive (two queues) or breadth-first.")] = "star-beast",
    order: Annotated[
        str, typer.Option(help="What goes first in a round: breadth-first, depth, in-degree or random.")
    ] = "breadth-first",
    pages: Annotated[str, typer.Option(help="How many pages to fetch: 300k, 1e7, 100M.")] = "1M",
    domains: Annotated[str, typer.Option(help="Honest domains of the web.")] = "200k",
    farms: Annotated[
        int | None, typer.Option(help="Spam farms, of three domains each; 0: none.  [default: domains / 1500]", min=0)
    ] = None,
    seed: Annotated[int, typer.Option(help="Which of all possible webs.")] = 1,
    connections: Annotated[int, typer.Option(help="Downloads at a time.", min=1)] = 1000,
    host_delay: Annotated[float, typer.Option(help="Seconds a host rests, without reputation.", min=0)] = 40.0,
    as_json: AsJson = False,
) -> None:
    """Try a policy on a virtual web of any size: the real frontier and politeness, no sockets, no waiting.

    Ctrl-C stops with checkpoint and report; killed, it goes on from its newest checkpoint.
    """
    from fyke.plan.quantities import read_count  # noqa: PLC0415 - see above
    from fyke.simulate import keep, report, session, spec  # noqa: PLC0415

    honest = round(read_count("--domains", domains))
    web = spec.WebSpec(seed=seed, domains=honest, farms=honest // 1500 if farms is None else farms)
    politeness, fetch = {"host_delay_s": host_delay}, {"connections": connections}
    asked = keep.Asked(web, policy, order, politeness=politeness, fetch=fetch)
    summary, stopped = session.run(into, asked, round(read_count("--pages", pages)), Reporter(stderr=True))
    if as_json:
        print_json(summary.as_dict())
    else:
        say(f"{report.text(summary)}\n{'report':>28}  {into / report.REPORT}")
    if stopped:
        raise typer.Exit(EXIT_INTERRUPTED)


@app.command()
def plan(  # noqa: PLR0913 - one parameter an option
    pages: Annotated[str, typer.Option(help="How many pages to crawl: 8e9, 8B, 500M.")] = "8e9",
    rate: Annotated[str, typer.Option(help="How many pages a second to crawl.")] = "3100",
    memory: Annotated[str, typer.Option(help="Memory for URL checks: 8GB, 8GiB.")] = "8GB",
    disk: Annotated[str | None, typer.Option(help="Disk for DRUM's buckets.  [default: grows with pages]")] = None,
    speed: Annotated[str, typer.Option(help="The disk's mean speed of reading and writing: 675MB/s.")] = "675MB/s",
    share: Annotated[str, typer.Option(help="Of the disk's speed, how much URL checks may use.")] = "0.15",
    network: Annotated[str, typer.Option(help="Speed of the network: 1Gbit/s, 125MB/s.")] = "1Gbit/s",
    links: Annotated[str | None, typer.Option(help="Links on a page.  [default: 59]")] = None,
    unique: Annotated[str | None, typer.Option(help="Which part of them is new.  [default: 1/9]")] = None,
    unique_links: Annotated[
        str | None, typer.Option(help="New links a page.  [default: 6.5, or --links times --unique if one is given]")
    ] = None,
    known: Annotated[str, typer.Option(help="URLs known before the crawl.")] = "100M",
    url: Annotated[str, typer.Option(help="Mean size of a URL in a queue.")] = "110B",
    page: Annotated[str, typer.Option(help="Mean size of a page as it is received.")] = "21.2kB",
    archived: Annotated[str, typer.Option(help="Of that size, what compression leaves in the archive.")] = "0.2",
    domains: Annotated[str, typer.Option(help="Domains with URLs over budget.")] = "33M",
    budget: Annotated[str, typer.Option(help="Mean budget of a domain, in pages.")] = "11",
    plot: Annotated[Path | None, typer.Option(help="Draw it too: a .png, .svg or .pdf file.", metavar="FILE")] = None,
    as_json: AsJson = False,
) -> None:
    """Size a machine: what a crawl needs of disk, memory and time, by IRLbot's model.

    What is not given is as in the paper (Lee et al., WWW 2008): 8 billion pages on one server of 2007.
    """
    from fyke.plan import planner, question, report  # noqa: PLC0415 - see above

    options = {
        "--pages": pages, "--rate": rate, "--memory": memory, "--disk": disk, "--speed": speed, "--share": share,
        "--network": network, "--links": links, "--unique": unique, "--unique-links": unique_links, "--known": known,
        "--url": url, "--page": page, "--archived": archived, "--domains": domains, "--budget": budget,
    }  # fmt: skip
    answer = planner.plan(question.read(options))
    if plot is not None:
        from fyke import plots  # noqa: PLC0415 - matplotlib takes a while
        from fyke.plan import figure  # noqa: PLC0415

        plots.extension(plot)
        plots.save(figure.draw(answer), plot)
    if as_json:
        print_json(answer.as_dict())
    else:
        say(report.text(answer, Console()))


def say(text: str) -> None:
    """`text` on stdout, now; the command ends where nobody reads on."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _let_go(sys.stdout)
        raise typer.Exit(EXIT_PIPE_CLOSED) from None


class Answers(Console):
    """Stdout, for what was asked for: the command ends where nobody reads on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        _let_go(sys.stdout)
        raise typer.Exit(EXIT_PIPE_CLOSED) from None


class Reporter(Console):
    """Stderr, for what is worth less than the work: where nobody reads on, it falls silent."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        _let_go(sys.stderr)


def print_json(value: dict[str, Any]) -> None:
    """One JSON document on stdout."""
    say(json.dumps(value, indent=2, default=_plain))


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _version(asked: bool) -> None:
    if asked:
        say(f"fyke {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")] = False,
) -> None:
    """A polite, crash-safe web crawler with bounded memory."""


def main() -> None:
    """The `fyke` command: every mistake is one line on stderr and an exit status."""
    try:
        status = app(prog_name="fyke", standalone_mode=False)
        sys.exit(status or 0)
    except FykeError as error:
        _complain(str(error), error.exit_status)
    except _UsageError as error:
        _complain_of_usage(error)
    except (typer.Abort, KeyboardInterrupt):
        _complain("interrupted", EXIT_INTERRUPTED)
    except OSError as error:  # of a file that only this command reads or writes, as stdout
        _let_go(sys.stdout)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        _complain(
            f"{error.filename or 'what was to be printed'}: {error.strerror or error}; free some space, or mend the"
            " file, and run the command again",
            (DiskFull if full else DirectoryError).exit_status,
        )


def _complain(text: str, status: int) -> NoReturn:
    with suppress(OSError):
        print(f"fyke: {' '.join(text.split())}", file=sys.stderr)
    sys.exit(status)


def _complain_of_usage(error: Any) -> NoReturn:
    command = error.ctx.command_path if error.ctx else "fyke"
    if error.__class__.__name__ == "NoArgsIsHelpError":  # somebody who looks around, and no mistake
        print(error.ctx.get_help(), file=sys.stderr)
        sys.exit(error.exit_code)
    text = error.format_message().rstrip(".").replace("Value error, ", "")
    _complain(f"{text[:1].lower()}{text[1:]}; {command} --help says more", error.exit_code)


def _let_go(stream: TextIO | None) -> None:
    """Nobody can read `stream` any more: let the interpreter's last flush go nowhere, and say nothing."""
    with suppress(OSError):
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
