"""The report as a page, laid out and written as one HTML file.

The command line calls `write_report`. Jinja escapes everything except SVG of our own. If something slips through, the
page's content security policy forbids scripts and anything from outside. Invariant: the file appears whole, by rename;
an older file stays until then.
"""

import time
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from rich.console import Console

from fyke.archive.directory import CrawlDirectory
from fyke.archive.inspect import CrawlStatus, status_of
from fyke.core import rewrite_rules
from fyke.core.config import Config
from fyke.core.errors import ConfigurationError
from fyke.core.version import VERSION
from fyke.disk.files import written_whole
from fyke.progress import Progress
from fyke.quantities import bytes_text, count_text, number, share_text, time_text
from fyke.report import charts, comparison
from fyke.report.broken import BrokenLink, BrokenLinks
from fyke.report.domains import DomainStanding, UnusualDomains, domain_standing, unusual_domains
from fyke.report.languages import languages
from fyke.report.near import NearDuplicates, near_duplicates
from fyke.report.shown import shown
from fyke.report.sql import Questions, Rows
from fyke.report.survey import Survey, survey

NAME = "report.html"
SEEDS = 12
RULES = 40
BROKEN_LINKS, PAGES_OF_EACH = 40, 3


def write_report(directory: Path, out: Path | None, console: Console, now_s: float | None = None) -> Path:
    """Write the report of the crawl in `directory` to `out` (`DIR/report.html` if None); return where it is.

    Raises NotACrawl, StateDamaged, ConfigurationError, DirectoryError, DiskFull.
    """
    crawl = CrawlDirectory(directory)
    crawl.config()
    path = out or directory / NAME
    if out is not None:
        _check(crawl, out)
    with Progress(console, "counting"):
        text = page(crawl, time.time() if now_s is None else now_s)
    with written_whole(path, refused="name another file with --out", synced=False) as part:
        part.write_text(text, encoding="utf-8")
    return path


def figures(directory: Path, console: Console) -> dict[str, Any]:
    """Return the report of the crawl in `directory` for programs: numbers, lists of rows, texts.

    Raises NotACrawl, StateDamaged.
    """
    crawl = CrawlDirectory(directory)
    config = crawl.config()
    with Progress(console, "counting"), Questions(crawl.path) as questions:
        facts = _facts(crawl, config, questions)
    links = facts.links
    return {
        "statistics": status_of(crawl).statistics.as_dict(),
        "survey": asdict(facts.found),
        "languages": {"sample": facts.sample, "pages": facts.spoken},
        "reputation": asdict(facts.stand) if facts.stand else None,
        "unusual": asdict(facts.unusual) if facts.unusual else None,
        "near": asdict(facts.near) if facts.near else None,
        "broken": {**links.as_dict(), "worst": [one._asdict() for one in facts.broken]} if links else None,
    }


class _Facts(NamedTuple):
    """What a report says of a crawl, to people and to programs."""

    found: Survey
    stand: DomainStanding | None
    spoken: Rows  # languages with their pages in the sample
    sample: int
    links: BrokenLinks | None  # None if there is no table of links
    broken: list[BrokenLink]  # the worst of them
    unusual: UnusualDomains | None
    near: NearDuplicates | None


def _facts(crawl: CrawlDirectory, config: Config, questions: Questions) -> _Facts:
    found, stand = survey(questions), domain_standing(questions, crawl.path)
    spoken, sample = languages(questions, crawl.path)
    links = BrokenLinks(questions) if config.store.links else None
    broken = [*links.worst(BROKEN_LINKS, PAGES_OF_EACH)] if links else []
    return _Facts(found, stand, spoken, sample, links, broken, unusual_domains(crawl.path), near_duplicates(questions))


def _check(crawl: CrawlDirectory, out: Path) -> None:
    if not out.absolute().parent.is_dir():
        raise ConfigurationError(f"--out {out}: there is no folder {out.parent}; make it, or name another")
    if out.is_dir():
        raise ConfigurationError(f"--out {out} is a folder: name a file in it, such as {out / NAME}")
    if out.suffix.lower() not in (".html", ".htm"):
        raise ConfigurationError(f"--out {out}: a report is HTML; end its name in .html")


def page(crawl: CrawlDirectory, now_s: float) -> str:
    """Return the report as HTML."""
    config = crawl.config()
    with Questions(crawl.path) as questions:
        status = status_of(crawl)
        facts = _facts(crawl, config, questions)
    found, stand = facts.found, facts.stand
    rules = _rules(crawl.path / rewrite_rules.FILE)
    values = {
        "rules": rules[:RULES],
        "rules_left": max(0, len(rules) - RULES),
        "version": VERSION,
        "made_s": now_s,
        "status": status,
        "config": config,
        "found": found,
        "tiles": _tiles(found, status),
        "settings": _settings(config),
        "stand": stand,
        "links": facts.links,
        "broken": facts.broken,
        "near": facts.near,
        "unusual": facts.unusual,
        "charts": {
            "course": [*charts.of_time(found), *charts.of_outcomes(found)],
            "pages": [
                *charts.of_media_types(found),
                *charts.of_sizes(found),
                *charts.of_depth(found),
                *charts.of_languages(facts.spoken, facts.sample),
            ],
            "domains": [*charts.of_degrees(stand.degrees if stand else [])],
        },
        "measures": comparison.measures(found, status.statistics),
        "statuses": comparison.statuses(found),
        "media_types": comparison.media_types(found),
        "more_seeds": max(0, len(config.crawl.seeds) - SEEDS),
    }
    return _environment().get_template("report.html").render(values)


def _rules(path: Path) -> list[rewrite_rules.Rule]:
    """Return the rewrite rules of the file `path`, copies of hosts first; empty without a file."""
    return sorted(rewrite_rules.load(path), key=lambda rule: (rule.use, -rule.support)) if path.is_file() else []


@cache
def _environment() -> Environment:
    folder = Path(__file__).parent / "templates"
    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        shown=shown,
        count=lambda value: f"{value:,}",
        number=number,
        lasting=_lasting,
        moment=_moment,
        words=lambda text: str(text).replace("_", " "),
        drawing=Markup,
    )
    made.globals["style"] = Markup((folder / "report.css").read_text(encoding="utf-8"))
    return made


def _lasting(seconds: float) -> str:
    return time_text(seconds) if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def _moment(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%d %B %Y, %H:%M UTC").lstrip("0")


def _tiles(found: Survey, status: CrawlStatus) -> list[tuple[str, str]]:
    """Return the numbers at the top, each with what it counts."""
    totals, now = found.totals, status.statistics
    lasted_s = now.total_s or totals.end_s - totals.begin_s
    tiles = [
        (count_text(totals.pages), "pages fetched whole"),
        (bytes_text(totals.body_bytes), "received"),
        (count_text(found.hosts.hosts), "hosts visited"),
        (count_text(found.hosts.domains), "domains visited"),
        (count_text(now.urls) if status.checkpoint else "unknown", "URLs discovered"),
        (count_text(now.waiting) if status.checkpoint else "unknown", "URLs still waiting"),
        (time_text(lasted_s), "of crawling"),
        (number(totals.pages / lasted_s) if lasted_s else "0", "pages a second"),
    ]
    if now.freshness is not None:
        tiles.append((share_text(now.freshness.fresh), "of copies believed fresh"))
        tiles.append((count_text(now.freshness.due), "due for a visit"))
    return tiles


def _settings(config: Config) -> list[tuple[str, Any]]:
    """Return the settings a reader must know: some always, others if they are not the default."""
    usual = Config()
    always = {
        "crawl.scope",
        "crawl.depth",
        "crawl.pages",
        "crawl.for_s",
        "agent.user_agent",
        "agent.contact",
        "politeness.host_delay_s",
        "politeness.address_delay_s",
    }
    rows = []
    for name, section in config.sections:
        for key, value in section:
            place = f"{name}.{key}"
            if place != "crawl.seeds" and (place in always or value != getattr(getattr(usual, name), key)):
                rows.append((place, ", ".join(map(str, value)) if isinstance(value, list) else str(value)))
    return rows
