"""Why was this URL fetched, or not? Everything the crawl knows of one URL.

`fyke why` asks the stages in the order in which a URL meets them: the filters as they are now, the seen
table, the queues of the newest checkpoint, the host book with the rules of robots.txt, the table of
pages. It reads only, also while the crawl runs; what happened since the last checkpoint it cannot know.
"""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from fyke.core.batches import Kind, u64, url_batch
from fyke.core.clock import SystemClock
from fyke.core.config import Config
from fyke.core.plugins import UrlFilter, load_plugin
from fyke.core.urls import Locator, locate, split
from fyke.crawl.agent import SCHEMES
from fyke.crawl.control import AskedLater, blocked_queue
from fyke.crawl.directory import CrawlDirectory
from fyke.crawl.inspect import in_use
from fyke.crawl.keeper import leased_queue, saved_state
from fyke.crawl.seeds import seed_of, seeds_of
from fyke.disk.checkpoint import look
from fyke.frontier.filters import Filters, filters_for
from fyke.frontier.frontier import Frontier
from fyke.hosts.book import HostBook
from fyke.hosts.robots import RobotsState
from fyke.store import scan_table


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a URL: a `verdict` in a line, and the facts behind it."""

    url: str
    verdict: str
    facts: list[str]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def why(directory: CrawlDirectory, asked: str) -> Answer:
    """What happened to the URL `asked` in the crawl of `directory`. Raises BadUrl, NotACrawl."""
    config = directory.config()
    at = seed_of(asked)
    url = at.url.decode()
    facts = [] if url == asked else [f"its canonical form is {url}"]
    facts += _host_facts(directory, config, url)
    row = _page_row(directory, at)
    if row is not None:
        return Answer(url, *_fetched(row, facts, directory))
    state = saved_state(directory.shard)
    kind = Kind.SEED if at in _seeds(directory, config) else Kind.PAGE
    refusal = _filters(directory, config, state).refusal(url_batch([at], kind=kind))
    where = _waiting(directory, config, state, at) if state else ""
    if where:
        if not in_use(directory):
            facts.append(f"the crawl is not running: fyke crawl --into {directory.path} goes on")
        return Answer(url, f"waiting: {where}", facts)
    if refusal:
        return Answer(url, f"filtered: it does not pass the rule {refusal}", facts)
    return Answer(url, "not seen: no page fetched so far links to it, nor does a sitemap", facts)


def _seeds(directory: CrawlDirectory, config: Config) -> list[Locator]:
    return seeds_of([*config.crawl.seeds, *AskedLater(directory.state).seeds])


def _filters(directory: CrawlDirectory, config: Config, state: dict[str, Any]) -> Filters:
    plugins: list[UrlFilter] = [load_plugin(name, "filters", UrlFilter) for name in config.plugins.filters]
    filters = filters_for(config.crawl, _seeds(directory, config), SCHEMES, plugins)
    for seed, target in state.get("landed", {}).items():
        filters.land(locate(seed), locate(target))
    return filters


def _page_row(directory: CrawlDirectory, at: Locator) -> dict[str, Any] | None:
    if not directory.tables.is_dir():
        return None
    rows = scan_table(directory.path, "pages", where=ds.field("key") == pa.scalar(at.key, pa.uint64()))
    found: list[dict[str, Any]] = [row for batch in rows for row in batch.to_pylist()]
    return found[-1] if found else None


def _fetched(row: dict[str, Any], facts: list[str], directory: CrawlDirectory) -> tuple[str, list[str]]:
    when = f"{row['fetched_at']:%Y-%m-%d %H:%M:%S} UTC"
    detail = f" ({row['detail']})" if row["detail"] else ""
    if row["outcome"] == "robots_forbade":
        return f"refused: robots.txt forbids it{detail}", facts
    if row["warc_file"]:
        verdict = f"fetched {when}: {row['outcome'].replace('_', ' ')}, status {row['status']}"
        facts.append(f"archived in {row['warc_file']} at byte {row['warc_offset']}, {row['warc_length']} bytes")
    else:
        verdict = f"failed {when}: {row['outcome'].replace('_', ' ')}{detail}"
    facts.append(f"depth {row['depth']}, linked as {row['kind']}, {row['tries']} tries failed before")
    if row["media_type"]:
        facts.append(f"{row['media_type']} {row['charset']}, {row['content_bytes']:,} bytes, {row['links']} links")
    if row["redirect_to"]:
        facts.append(f"it redirects to {row['redirect_to']}")
    if row["duplicate"]:
        facts.append("its body was met before at the same place, so it was not parsed again")
    via = _url_of(directory, row["via"])
    if via:
        facts.append(f"found on {via}")
    return verdict, facts


def _url_of(directory: CrawlDirectory, key: int) -> str:
    if not key:
        return ""
    where = ds.field("key") == pa.scalar(key, pa.uint64())
    rows = scan_table(directory.path, "pages", ["url"], where)
    return next((url for batch in rows for url in batch.column("url").to_pylist()), "")


def _waiting(directory: CrawlDirectory, config: Config, state: dict[str, Any], at: Locator) -> str:
    """Where the newest checkpoint has `at` waiting, in words; empty when nowhere."""
    store, _ = look(directory.shard)
    filters = _filters(directory, config, state)
    frontier = Frontier(
        store, config.frontier, filters, by_level=False, host_delay_s=0.0, opened_at=0.0, state=state["frontier"]
    )
    leased = ("in memory, for its host's turn", leased_queue(store, state).scan())
    blocked = ("since its host is blocked", blocked_queue(store, state.get("blocked")).scan())
    for words, batches in (leased, blocked, *frontier.places()):
        if any(bool(np.any(u64(batch, "key") == np.uint64(at.key))) for batch in batches):
            return words
    return "its fate is younger than the last checkpoint" if frontier.seen.holds(at.key) else ""


def _host_facts(directory: CrawlDirectory, config: Config, url: str) -> list[str]:
    """What is known of its host: rest, failures, the line of robots.txt that decides."""
    if not directory.hosts.exists():
        return []
    parts, now, facts = split(url), SystemClock().now(), []
    with HostBook(directory.hosts, read_only=True) as book:
        host, robots = book.host(parts.host), book.robots(parts.origin)
    if parts.host in AskedLater(directory.state).blocked:
        facts.append(f"{parts.host} is blocked by a person: nothing is requested of it until that is taken back")
    if host is None:
        facts.append(f"no request was made to {parts.host}, or it is too recent to be written down")
    else:
        if host.retired:
            facts.append(f"{parts.host} was given up: {host.retired}")
        if host.next_allowed_at > now:
            until = datetime.fromtimestamp(host.next_allowed_at, UTC)
            facts.append(f"{parts.host} rests until {until:%Y-%m-%d %H:%M:%S} UTC, as it asked or because it failed")
        row = "" if host.retired else f", {host.failures} failures in a row"
        facts.append(f"{parts.host} had {host.pages} pages fetched{row}")
    if robots is not None:
        verdict = robots.rules(config.agent.user_agent).verdict(parts.target)
        word = "allows" if verdict.allowed else "forbids"
        if robots.state is RobotsState.RULES and verdict.line_number:
            facts.append(f"robots.txt {word} it in line {verdict.line_number}: {verdict.line_text}")
        elif robots.state is RobotsState.RULES:
            facts.append(f"robots.txt {word} it: no line speaks of it")
        else:
            facts.append(f"its host's rules: {robots.reason}")
    return facts
