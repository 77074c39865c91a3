"""Commands for those who try before they crawl: `web`, `simulate`, `plan`."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fyke.cli import rooms
from fyke.cli.app import AsJson, app, asked_by, path
from fyke.cli.console import Reporter, print_json, say, say_aside
from fyke.core.errors import EXIT_INTERRUPTED, ConfigurationError

MOST_PAGES = 1 << 40  # of a synthetic web


@app.command()
def web(
    pages: Annotated[int, typer.Option(help="Number of pages.", min=1, max=MOST_PAGES)] = 3600,
    hosts: Annotated[int, typer.Option(help="Number of hosts.", min=1)] = 120,
    seed: Annotated[int, typer.Option(help="Number that selects the synthetic web.", min=0, max=(1 << 63) - 1)] = 1,
    plain: Annotated[bool, typer.Option("--plain", help="Make a web without faults and surprises.")] = False,
    port: Annotated[int, typer.Option(help="Port of its HTTP server; 0: any free port.", min=0, max=65535)] = 0,
    dns_port: Annotated[int, typer.Option(help="Port of its name server; 0: any free port.", min=0, max=65535)] = 0,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="Write every request to this file, in Arrow's stream format; a file that is there is replaced.",
            metavar="FILE",
            parser=path,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a synthetic web on this machine, for any crawler. Ctrl-C ends it."""
    if hosts > pages:
        raise ConfigurationError(f"--pages {pages} cannot be on {hosts} hosts: choose more --pages, or fewer --hosts")
    kind = rooms.simweb.plain if plain else rooms.simweb.lively
    spec = kind(pages=pages, hosts=hosts, seed=seed, http_port=port, dns_port=dns_port)

    def ready(running: "rooms.simweb.Web") -> None:
        if as_json:
            say(json.dumps({"seeds": running.seeds, "dns": running.dns}))
        else:
            say(running.welcome())

    try:
        rooms.simweb.serve(spec, ready, ledger)
    except OSError as error:
        if error.filename is not None:
            raise ConfigurationError(f"--ledger {ledger} cannot be written: {error.strerror}") from None
        raise ConfigurationError(f"the synthetic web cannot listen: {error.strerror}; choose another port") from None


@dataclass(frozen=True, slots=True)
class SimulateArguments:
    """The options of `simulate`, as they are typed."""

    into: Annotated[
        Path,
        typer.Option(help="Directory of the simulation; the same command again goes on.", metavar="DIR", parser=path),
    ]
    policy: Annotated[
        str, typer.Option(help="star-beast (budgets), naive (budgets, two queues) or breadth-first (no budgets).")
    ] = "star-beast"
    order: Annotated[str, typer.Option(help="Order of URLs in a round: breadth-first, depth, in-degree or random.")] = (
        "breadth-first"
    )
    pages: Annotated[str, typer.Option(help="Number of pages to fetch: 300k, 1e7, 100M.")] = "1M"
    domains: Annotated[str, typer.Option(help="Number of honest domains of the web.")] = "200k"
    farms: Annotated[
        int | None,
        typer.Option(help="Number of spam farms, with three domains each.  [default: --domains / 1500]", min=0),
    ] = None
    seed: Annotated[int, typer.Option(help="Number that selects the synthetic web.")] = 1
    connections: Annotated[int, typer.Option(help="Downloads at a time.", min=1)] = 1000
    host_delay: Annotated[float, typer.Option(help="Seconds a host without reputation rests.", min=0)] = 40.0
    revisit: Annotated[
        float,
        typer.Option(
            help="Pages change every DAYS days (median) and are visited again; then there are no giant domains.",
            metavar="DAYS",
            min=0,
        ),
    ] = 0.0
    as_json: AsJson = False


@app.command()
@asked_by(SimulateArguments)
def simulate(asked: SimulateArguments) -> None:
    """Try a crawl policy on a virtual web of any size.

    The frontier and politeness are the real ones. There is no network, and time is simulated. Ctrl-C stops with a
    checkpoint and a report. After a kill, the same command goes on from the newest checkpoint.

    Exit status: 0 done, or stopped by SIGTERM, 2 wrong usage, 3 the directory cannot be used, 4 the disk is full, 130
    interrupted.
    """
    honest = rooms.quantities.read_whole("--domains", asked.domains)
    wanted = rooms.quantities.read_whole("--pages", asked.pages)
    web = rooms.spec.VirtualWebSpec(
        seed=asked.seed,
        domains=honest,
        farms=honest // 1500 if asked.farms is None else asked.farms,
        giants=0 if asked.revisit else rooms.spec.GIANTS,
        change_days=asked.revisit,
    )
    politeness, fetch = {"host_delay_s": asked.host_delay}, {"connections": asked.connections}
    settings = rooms.keep.SimulationSettings(web, asked.policy, asked.order, politeness=politeness, fetch=fetch)
    summary, stopped = rooms.session.run(asked.into, settings, wanted, Reporter(stderr=True))
    if asked.as_json:
        print_json(asdict(summary))
    else:
        say(f"{rooms.simulation_report.text(summary)}\n{'report':>28}  {asked.into / rooms.simulation_report.REPORT}")
    if stopped.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    if summary.pages != wanted and not stopped():
        more = "downloads under way at the end counted too, or an earlier run fetched more"
        reason = more if summary.pages > wanted else "no link leads to another page"
        say_aside(f"--pages {wanted:,}: {summary.pages:,} were fetched; {reason}")


@dataclass(frozen=True, slots=True)
class PlanArguments:
    """The options of `plan`, as they are typed."""

    pages: Annotated[str, typer.Option(help="Number of pages to crawl: 8e9, 8B, 500M.")] = "8e9"
    rate: Annotated[str, typer.Option(help="Pages to crawl a second.")] = "3100"
    memory: Annotated[str, typer.Option(help="Memory for checks whether a URL is new: 8GB, 8GiB.")] = "8GB"
    disk: Annotated[
        str | None,
        typer.Option(help="Disk for URLs that wait for a check (DRUM's buckets).  [default: grows with pages]"),
    ] = None
    speed: Annotated[str, typer.Option(help="The disk's mean speed of reading and writing: 675MB/s.")] = "675MB/s"
    share: Annotated[str, typer.Option(help="Share of the disk's speed for these checks.")] = "0.15"
    network: Annotated[str, typer.Option(help="Speed of the network: 1Gbit/s, 125MB/s.")] = "1Gbit/s"
    links: Annotated[str | None, typer.Option(help="Links on a page.  [default: 59]")] = None
    unique: Annotated[str | None, typer.Option(help="Share of links that are new.  [default: 1/9]")] = None
    unique_links: Annotated[
        str | None,
        typer.Option(help="New links a page.  [default: 6.5, or --links times --unique if one of them is given]"),
    ] = None
    known: Annotated[str, typer.Option(help="URLs known before the crawl.")] = "100M"
    url: Annotated[str, typer.Option(help="Mean size of a URL in a queue.")] = "110B"
    page: Annotated[str, typer.Option(help="Mean size of a page as it is received.")] = "21.2kB"
    archived: Annotated[str, typer.Option(help="Size of a page in the archive, as a share of --page.")] = "0.2"
    domains: Annotated[str, typer.Option(help="Number of domains with more URLs than their budget.")] = "33M"
    budget: Annotated[str, typer.Option(help="Mean budget of a domain: pages in a round.")] = "11"
    plot: Annotated[
        Path | None,
        typer.Option(help="Also draw the plan, into a .png, .svg or .pdf file.", metavar="FILE", parser=path),
    ] = None
    as_json: AsJson = False


@app.command()
@asked_by(PlanArguments)
def plan(asked: PlanArguments) -> None:
    """Size a machine for a crawl, by IRLbot's model.

    It says which disk, memory and time the crawl needs. The defaults are the values of the paper (Lee et al., WWW
    2008): 8 billion pages on one server of 2007.
    """
    aside = ("plot", "as_json")
    given = {f"--{name.replace('_', '-')}": text for name, text in asdict(asked).items() if name not in aside}
    answer = rooms.planner.plan(rooms.question.read(given))
    if asked.plot is not None:
        rooms.plots.extension(asked.plot)
        rooms.plots.save(rooms.figure.draw(answer), asked.plot)
    if asked.as_json:
        print_json(asdict(answer))
    else:
        say(rooms.plan_report.text(answer, Console()))
