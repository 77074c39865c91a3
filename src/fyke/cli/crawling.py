"""The command `crawl`: its options become settings, and `fyke.crawl.run` does the rest."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fyke.cli import rooms
from fyke.cli.app import AsJson, app, asked_by, not_empty, path
from fyke.cli.console import Reporter, print_json, say_aside
from fyke.core.choices import Scope
from fyke.core.errors import EXIT_INTERRUPTED, EXIT_NO_PAGE, ConfigurationError, Stopped


@dataclass(frozen=True, slots=True)
class CrawlArguments:
    """The options of `crawl`, as they are typed."""

    urls: Annotated[list[str] | None, typer.Argument(help="URLs where the crawl begins.", metavar="URL...")] = None
    into: Annotated[
        Path | None,
        typer.Option(help="The crawl's directory; if it holds a crawl, that goes on.", metavar="DIR", parser=path),
    ] = None
    seeds: Annotated[
        list[str] | None,
        typer.Option(
            help="Also begin at the URLs in this file, see above; -: standard input.", metavar="FILE", parser=not_empty
        ),
    ] = None
    scope: Annotated[
        Scope | None,
        typer.Option(help="Follow links within this part of the web; seeds: follow none.  [default: host]"),
    ] = None
    pages: Annotated[str | None, typer.Option(help="Stop after this many pages: 300, 20k, 1M.")] = None
    bytes_: Annotated[str | None, typer.Option("--bytes", help="Stop after this many bytes: 10GB, 500MB.")] = None
    for_: Annotated[str | None, typer.Option("--for", help="Stop after this time, pauses included: 90s, 10m, 2h.")] = (
        None
    )
    wait: Annotated[
        str | None,
        typer.Option(
            help="Longest wait if all remaining hosts rest, or the disk is full, not for their hours.  [default: 1h]"
        ),
    ] = None
    agents: Annotated[int | None, typer.Option(help="Number of processes that crawl.  [default: 1]", min=1)] = None
    depth: Annotated[int | None, typer.Option(help="Follow links at most this many steps from a seed.", min=1)] = None
    allow: Annotated[
        list[str] | None, typer.Option(help="Only URLs that match this RE2 expression, or another --allow.")
    ] = None
    deny: Annotated[list[str] | None, typer.Option(help="No URLs that match this RE2 expression.")] = None
    delay: Annotated[
        float | None,
        typer.Option(help="Seconds a host rests between requests; 0: no rests, for your own server.", min=0),
    ] = None
    requisites: Annotated[bool | None, typer.Option("--requisites", help="Also fetch images, styles and scripts.")] = (
        None
    )
    rewrite: Annotated[
        Path | None,
        typer.Option(
            help="Rewrite links by the rules in this file, which fyke rewrite wrote.", metavar="FILE", parser=path
        ),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(help="A file of settings, written like a crawl's fyke.toml.", metavar="FILE", parser=path),
    ] = None
    user_agent: Annotated[str | None, typer.Option(help="The crawler's name, also for the rules of robots.txt.")] = None
    contact: Annotated[
        str | None, typer.Option(help="URL or e-mail address for owners of sites, sent with every request.")
    ] = None
    dns: Annotated[list[str] | None, typer.Option(help="Name server to ask: address or address:port.")] = None
    private: Annotated[list[str] | None, typer.Option(help="A domain whose addresses may be private.")] = None
    again: Annotated[bool, typer.Option("--again", help="Visit all pages of a finished crawl once more.")] = False
    visits: Annotated[
        str | None, typer.Option(help="With --again: only this many pages, the likeliest to have changed.")
    ] = None
    revisit: Annotated[
        bool, typer.Option("--revisit", help="Never end: visit pages again when they are likely to have changed.")
    ] = False
    metrics: Annotated[
        str | None, typer.Option(help="Serve metrics for Prometheus at this port or HOST:PORT.", metavar="PORT")
    ] = None
    as_json: AsJson = False

    def directory(self) -> "rooms.directory.CrawlDirectory":
        """Return the directory that was named."""
        if self.into is None:
            rooms.seeds.seeds_of(self.urls or ())  # a seed that is not a URL is reported first
            raise ConfigurationError("no directory given: name the crawl's directory with --into DIR")
        return rooms.directory.CrawlDirectory(self.into)

    def sections(self) -> dict[str, dict[str, Any]]:
        """Return the settings that were given, by section; None where none was."""
        return {
            "crawl": {
                "seeds": self.urls or None, "scope": self.scope, "pages": _whole(self.pages, "--pages"),
                "for_s": _seconds(self.for_, "--for"), "wait_s": _seconds(self.wait, "--wait", or_none=True),
                "bytes": None if self.bytes_ is None else int(rooms.quantities.read_bytes("--bytes", self.bytes_)),
                "agents": self.agents, "depth": self.depth, "allow": self.allow, "deny": self.deny,
                "requisites": self.requisites,
                "rewrite": None if self.rewrite is None else str(self.rewrite.absolute()),
            },
            "agent": {"user_agent": self.user_agent, "contact": self.contact},
            "politeness": {} if self.delay is None else _delays(self.delay),
            "dns": {"servers": self.dns, "private": self.private},
        }  # fmt: skip

    def asked_pass(self, directory: "rooms.directory.CrawlDirectory") -> "rooms.passes.Pass | None":
        """Return the pass over known pages that is asked for, if any."""
        visits = _whole(self.visits, "--visits")
        if visits is not None and not self.again:
            raise ConfigurationError("--visits is the number of pages that --again visits: give --again too")
        if self.again and not directory.holds_crawl:
            raise ConfigurationError(f"--again: {directory.path} holds no crawl yet; begin it without --again")
        if self.again and self.revisit:
            raise ConfigurationError("--again visits all pages once, --revisit each when it is due: give one of them")
        return rooms.passes.Pass(visits, forever=self.revisit) if self.again or self.revisit else None


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
@asked_by(CrawlArguments)
def crawl(asked: CrawlArguments) -> None:
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
    directory = asked.directory()
    settings = _settings(directory, asked.config, asked.sections(), listed=bool(asked.seeds))
    asked_pass = asked.asked_pass(directory)
    console = Reporter(stderr=True)
    try:
        summary = rooms.run.crawl_with_panel(
            directory, settings, console, asked.seeds or (), asked_pass=asked_pass, metrics=asked.metrics
        )
    except Stopped as stopped:
        if asked.as_json:
            print_json(rooms.run.stopped_before(directory, stopped).as_dict())
        raise
    if asked.as_json:
        print_json(summary.as_dict())
    rooms.summary.report(summary, directory, console)
    if because := rooms.summary.without_page_because(summary):
        first = directory.first_seed(settings)
        say_aside(f"no seed brought a page: {because}; fyke why {directory.path} {first} says more")
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
    in_file = rooms.config.read(config) if config else {}
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
