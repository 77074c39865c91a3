"""Why was this URL fetched, or not? Everything the crawl knows of one URL.

`fyke why` asks the stages in the order in which a URL meets them: the filters as they are now, the seen table, the
newest checkpoint's queues, the host book with the rules of robots.txt, the table of pages. It only reads, also while
the crawl runs, and cannot know what happened since the last checkpoint. If a file of the table is damaged, it answers
from the others, says so, and never says "not seen".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from fyke.archive.asked import AskedLater, all_seeds
from fyke.archive.captures import Captures
from fyke.archive.directory import CrawlDirectory, crawl_clock, saved_state
from fyke.archive.division import division
from fyke.archive.inspect import ending_of, in_use
from fyke.archive.rows_of import redirects_from, shortest_link_to, url_with, visits_to
from fyke.core.batches import URLS, Kind, u64, url_batch
from fyke.core.clock import SystemClock
from fyke.core.config import Config, RevisitSection
from fyke.core.errors import ConfigurationError
from fyke.core.hours import HostHours
from fyke.core.plugins import named, schemes_of
from fyke.core.rewrite_rules import rewrite_rules_of
from fyke.core.rewriting import Rewriter, exceptions
from fyke.core.seeds import seed_of
from fyke.core.urls import Locator, key_of, locate, robots_url, split
from fyke.core.visits import SAME_TEXT
from fyke.disk.checkpoint import look
from fyke.disk.drum import Drum
from fyke.fetcher.robots import MAX_CRAWL_DELAY_S, RobotsRecord, RobotsState
from fyke.fetcher.shared_book import ReadBooks
from fyke.frontier.filters import Filters, filters_for
from fyke.frontier.gone import GONE_S
from fyke.frontier.looking import BLOCKED, LEFT_OUT, OVER_QUOTA, YOUNGER, SavedFrontier
from fyke.frontier.page_history import USUAL_S
from fyke.frontier.quota import PageLimits
from fyke.frontier.revisit.belief import Belief, bounds, prior, seen
from fyke.frontier.revisit.choice import CHANCE, Resting, Terms, due_at
from fyke.frontier.revisit.signals import Trust, credit, no_trust
from fyke.quantities import counted, duration, share_text


@dataclass(frozen=True, slots=True)
class Explanation:
    """What became of a URL: a `verdict` in a line, and the facts behind it."""

    url: str
    verdict: str
    facts: list[str]


def why(directory: CrawlDirectory, asked: str) -> Explanation:
    """Explain what happened to the URL `asked` in the crawl of `directory`. Raises BadUrl, NotACrawl, StateDamaged."""
    config = directory.config()
    at = seed_of(asked)
    url = at.url.decode()
    facts = [] if url == asked else [f"its canonical form is {url}"]
    facts += _host_facts(directory, config, url)
    rows, damage = visits_to(directory, at.key)
    if damage:
        facts.append(f"other visits may be in a table that cannot be read: {damage[0]}")
    aside, how = _aside(config, at, directory)
    if rows:
        return _visited(directory, config, at, rows, [*facts, *how])
    record = _fetched_as_rules(directory, url)
    if record is not None:
        return Explanation(url, *_rules_fetched(record, facts, crawl_clock(directory).wall_ahead_s))
    listed = any(url == one for one in directory.listed.urls())
    kind = Kind.SEED if listed or at in all_seeds(directory.state, config) else Kind.PAGE
    filters = _filters(directory, config)
    refusal = filters.refusal(url_batch([at], kind=kind))
    where, reason = _waiting(directory, config, at)
    if where == OVER_QUOTA:
        most = PageLimits(config.site).of(split(url).host)
        return Explanation(url, f"left out: its host has reached its limit of {counted(most, 'page')}", facts)
    facts += [reason] if reason else []
    if where and not (damage and where == YOUNGER):
        if not in_use(directory):
            facts.append(f"the crawl is not running: fyke crawl --into {directory.path} goes on")
        return Explanation(url, f"waiting: {where}{_trouble(directory, url)}", facts)
    if aside:
        return Explanation(url, aside, [*facts, *how])
    if damage:
        raise damage[0]
    if refusal:
        return Explanation(url, f"filtered: it does not pass the rule {refusal}", facts)
    return _not_taken(directory, config, at, filters, [*facts, *how])


def _visited(
    directory: CrawlDirectory, config: Config, at: Locator, rows: list[dict[str, Any]], facts: list[str]
) -> Explanation:
    url, met = at.url.decode(), rows[0]["url"]
    if met != url:
        return Explanation(url, f"left out: it has the same key as {met}, which was met first", facts)
    verdict, facts = _fetched(rows, facts, directory)
    return Explanation(url, verdict, [*facts, *_visits(rows, directory), *_next_visit(directory, config, at, rows)])


def _not_taken(
    directory: CrawlDirectory, config: Config, at: Locator, filters: Filters, facts: list[str]
) -> Explanation:
    """Explain a URL that no rule refuses whatever links to it, and that never waited."""
    url, link = at.url.decode(), shortest_link_to(directory, at.key)
    if link is not None:
        facts = [*facts, f"found on {link[0]}"]
        refusal = filters.refusal(url_batch([at], depth=link[1]))
        earlier = "left out: when it was found, a rule refused it that the settings no longer have"
        earlier += ", or it was found since the last checkpoint" if ending_of(directory.states) == "running" else ""
        return Explanation(url, f"filtered: it does not pass the rule {refusal}" if refusal else earlier, facts)
    probe = Captures(directory.path).probe(url)
    if probe is not None:
        asked = f"asked for {_utc(probe.taken_at)}, status {probe.status}, though no page links to it"
        return Explanation(url, f"{asked}: fyke made this URL up, to see whether its host makes pages up", facts)
    cut = sum(state["totals"]["cut"] for state in directory.states)
    unread = [f"the ends of {counted(cut, 'page')} were not read for links or values"] if cut else []
    if not config.store.links:
        unread.append(
            "links that depth, allow or deny left out are not known: there is no table of links (store.links)"
        )
    verdict = "not seen: no fetched page has a link to it that may be followed, and no sitemap names it"
    return Explanation(url, verdict, [*facts, *unread])


def _aside(config: Config, at: Locator, directory: CrawlDirectory) -> tuple[str, list[str]]:
    """Return the verdict on a URL that rewrite rules put aside, empty if they did not, and facts about the rules."""
    shard = CrawlDirectory(directory.path, division(directory.state).shard_of(at.domain)).shard
    saved = saved_state(shard).get("rewriting")
    if not saved:
        return "", []
    try:
        rules = rewrite_rules_of(config.crawl)
    except ConfigurationError as error:
        return "", [f"the rules that rewrite links cannot be read: {error}"]
    by = saved["revoked"]
    exceptional = set().union(*(exceptions(state.get("rewriting") or {}) for state in directory.states))
    made = Rewriter(rule for rule in rules if rule.name not in by).rewrite(at.url.decode())
    revoked = Rewriter(rule for rule in rules if rule.name in by).rewrite(at.url.decode()).rules
    facts = [f"the rewrite rule {rule.name} is revoked: {by[rule.name]} contradicted it" for rule in revoked]
    if at.key in exceptional:
        facts.append("it is an exception to rewrite rules: URLs that they would make into it had other contents")
    if not made.rules:
        return "", facts
    names = ", ".join(rule.name for rule in made.rules)
    if key_of(made.url) in exceptional:
        return "", [*facts, f"links to it stay as they are: {made.url} is an exception to the rules {names}"]
    facts.append(f"links to it are rewritten to {made.url} by the rules {names}")
    with Drum(look(shard)[0], "aside", saved["met"], aux=URLS) as met:
        known, _ = met.get(at.key)
    return (f"put aside: rewritten to {made.url} (ask fyke why about that URL)" if known else ""), facts


def _filters(directory: CrawlDirectory, config: Config) -> Filters:
    schemes = sorted(schemes_of(named(config.plugins, "protocols")))
    filters = filters_for(config.crawl, all_seeds(directory.state, config), schemes, named(config.plugins, "filters"))
    for batch in directory.listed.batches():
        filters.begin(batch)
    for state in directory.states:
        for seed, target in state["frontier"]["landed"].items():
            filters.land(locate(seed), locate(target))
    return filters


def _visits(rows: list[dict[str, Any]], directory: CrawlDirectory) -> list[str]:
    """Say how often a page that was asked for more than once was visited, and when its content changed."""
    rows = [row for row in rows if row["address"]]
    if len(rows) < 2:
        return []
    contents = [row for row in rows if row["outcome"] in ("ok", "too_large") and row["detail"] != SAME_TEXT]
    facts = [f"visited {counted(len(rows), 'time')} since {_utc(rows[0]['fetched_at'])}"]
    if contents:
        changes = counted(len(contents) - 1, "time") if len(contents) > 1 else "never"
        what = "has now" if rows[-1]["outcome"] in ("ok", "too_large", "unchanged") else "last had"
        first = _utc(contents[-1]["fetched_at"])
        facts.append(f"its content changed {changes} since then; the content it {what} was first fetched {first}")
    if rows[-1]["outcome"] == "gone":
        again = _utc(rows[-1]["fetched_at"] + timedelta(seconds=GONE_S + crawl_clock(directory).wall_ahead_s))
        seldom = f"--revisit and passes with a limit leave it out until {again}"
        facts.append(f"it is gone: a pass over all pages asks for it again; {seldom}")
    return facts


def _next_visit(directory: CrawlDirectory, config: Config, at: Locator, rows: list[dict[str, Any]]) -> list[str]:
    """Say how often the page changes, as far as visits tell, and when it is due, if it is visited again."""
    frontier = _frontier(directory, config, at)
    record, forever, told = None, False, (no_trust(1), 0.0, 0.0)
    if frontier is not None:
        with frontier:
            record, forever = frontier.known(at.key), frontier.freshness.at > 0
            told = frontier.told(at, float(record["at"]) if record is not None else 0.0)
            where = next((words for words, batches in frontier.places() if _holds(batches, at)), "")
    found = [row for row in rows if row["outcome"] in ("ok", "too_large", "unchanged")]
    if record is None or not record["shape"]:
        belief, known_at = prior(np.zeros(1), np.zeros(1), 1 / USUAL_S), 0.0
    else:
        belief, known_at = Belief(*(np.array([float(record[name])]) for name in ("shape", "time"))), float(record["at"])
    for before, row in pairwise(found):
        if row["fetched_at"].timestamp() > known_at:
            since = np.array([(row["fetched_at"] - before["fetched_at"]).total_seconds()])
            belief = seen(
                belief, np.array([row["outcome"] != "unchanged" and row["detail"] != SAME_TEXT]), np.maximum(since, 1.0)
            )
    facts = []
    if len(found) > 1:
        seldom, often = (_span(1 / float(rate[0])) for rate in bounds(belief))
        facts.append(
            f"it changes every {_span(1 / float(belief.mean[0]))} or so, most likely every {often} to {seldom}"
        )
    if told[2]:
        facts.append(f"it links to a new page every {_span(1 / told[2])} or so")
    if told[1]:
        chance = share_text(float(credit(belief, told[0])[0]))
        times = counted(int(told[1]), "time")
        facts.append(f"a sitemap or feed has said {times} since then that it changed; chance of being true: {chance}")
    if forever and rows[-1]["outcome"] != "gone":
        due = _due(config.revisit, belief, told, found[-1:], rows[-1], crawl_clock(directory))
        facts.append(f"it waits {where}" if where else due)
    return facts


def _due(
    asked: RevisitSection,
    belief: Belief,
    told: tuple[Trust, float, float],
    found: list[dict[str, Any]],
    last: dict[str, Any],
    clock: SystemClock,
) -> str:
    """Say when a page that rests is due, and why then."""
    tried = last["fetched_at"].timestamp()
    at = found[0]["fetched_at"].timestamp() if found else 0.0
    first = np.array([last["kind"] == "listing"])
    fetched_at, tried_at, signals, finds = (np.array([number]) for number in (at, tried, told[1], told[2]))
    host, weight = np.zeros(1, np.uint64), np.ones(1)
    resting = Resting(host, fetched_at, tried_at, belief, first, told[0], signals, weight, finds)
    due = float(due_at(resting, Terms(asked.least_s, asked.greatest_s), clock.now())[0])
    when = f"it is due from {_utc(due + clock.wall_ahead_s)} on"
    if due <= tried + asked.least_s:
        return f"{when}: {duration(asked.least_s)} after the last visit, the least time"
    if not at or due >= at + asked.greatest_s:
        return f"{when}: {_span(asked.greatest_s)} after the last visit, the greatest time"
    if tried > at:
        return f"{when}: visits since {_utc(found[0]['fetched_at'])} brought nothing, so it waits as long again"
    return f"{when}: the chance that it has changed by then is one in {1 / CHANCE:.0f}"


def _span(seconds: float) -> str:
    days = seconds / 86400
    return f"{days:,.0f} days" if days >= 2 else duration(seconds)


def _utc(at: datetime | float) -> str:
    """Write a time, in UTC or unix seconds."""
    return f"{at if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _fetched(rows: list[dict[str, Any]], facts: list[str], directory: CrawlDirectory) -> tuple[str, list[str]]:
    row, when = rows[-1], _utc(rows[-1]["fetched_at"])
    detail = f" ({row['detail']})" if row["detail"] else ""
    if row["outcome"] == "robots_forbade":
        said_already = row["detail"].replace("line", "robots.txt forbids it in line", 1)
        return f"refused: robots.txt forbids it{detail}", [fact for fact in facts if fact != said_already]
    if row["warc_file"]:
        verdict = f"fetched {when}: {row['outcome'].replace('_', ' ')}, status {row['status']}"
        verdict += _leads_back(redirects_from(directory, row), row["url"])
        facts += [row["detail"]] if row["detail"] else []
        facts.append(
            f"archived in {row['warc_file']} at byte {row['warc_offset']}, {counted(row['warc_length'], 'byte')}"
        )
    else:
        verdict = f"failed {when}: {row['outcome'].replace('_', ' ')}{detail}"
    facts.append(f"depth {row['depth']}, linked as {row['kind']}, {counted(row['tries'], 'try')} failed before")
    if row["media_type"]:
        links = [] if row["outcome"] == "unchanged" else [counted(row["links"], "link")]  # otherwise they were not read
        kind = f"{row['media_type']} {row['charset']}".strip()
        facts.append(", ".join([kind, counted(row["content_bytes"], "byte"), *links]))
    if row["redirect_to"]:
        facts.append(f"it redirects to {row['redirect_to']}")
    if same := url_with(directory, "fingerprint", row["fingerprint"], row["key"]) if row["content_bytes"] else "":
        facts.append(f"{same} has the same bytes")
    if row["duplicate"]:
        facts.append("the same body was found before at this place, so it was not parsed again")
    if row["noindex"]:
        facts.append("it says noindex: search leaves it out, and so do exports without --all")
    if via := url_with(directory, "key", row["via"]):
        facts.append(f"found on {via}")
    return verdict, facts


def _leads_back(way: list[str], url: str) -> str:
    """Say that redirects lead back to `url`, if it is on their `way`."""
    by = f" by way of {way[0]}" if len(way) > 1 else ""
    return f": it leads to itself{by}, so a cookie may be missing" if url in way else ""


def _fetched_as_rules(directory: CrawlDirectory, url: str) -> RobotsRecord | None:
    """Return what the host book has of `url` if it is the robots.txt of an origin: the tables have only pages."""
    origin = split(url).origin
    if url != robots_url(origin) or not any(book.exists() for book in directory.host_books):
        return None
    with ReadBooks(directory.host_books) as book:
        return book.robots(origin)


def _rules_fetched(record: RobotsRecord, facts: list[str], wall_ahead_s: float) -> tuple[str, list[str]]:
    came = f"status {record.status}" if record.state is RobotsState.RULES else record.reason
    again = f"it is asked for again after {_utc(record.expires_at + wall_ahead_s)}, when its host is visited"
    return f"asked for {_utc(record.fetched_at)}, as the rules of its host: {came}", [*facts, again]


def _frontier(directory: CrawlDirectory, config: Config, at: Locator) -> SavedFrontier | None:
    """Return the newest checkpoint of the shard of `at`, if there is one."""
    shard = directory.parts[division(directory.state).shard_of(at.domain)].shard
    return SavedFrontier(shard, config.frontier) if saved_state(shard) else None


def _holds(batches: Iterator[pa.RecordBatch], at: Locator) -> bool:
    return any(bool(np.any(u64(batch, "key") == np.uint64(at.key))) for batch in batches)


def _waiting(directory: CrawlDirectory, config: Config, at: Locator) -> tuple[str, str]:
    """Return where the newest checkpoint has `at` waiting, in words, and why if that is not plain; empty if nowhere, or
    where nothing waits to be fetched."""
    found = _frontier(directory, config, at)
    if found is None:
        return "", ""
    with found as frontier:
        for words, batches in frontier.places():
            if _holds(batches, at):
                blocked = split(at.url.decode()).host in AskedLater(directory.state).blocked
                words = "for the crawl to go on" if words == BLOCKED and not blocked else words
                reason = frontier.reason(words, at, crawl_clock(directory).wall_ahead_s)
                return (words if words != LEFT_OUT else ""), reason
        return YOUNGER if frontier.met(at.key) else "", ""


def _trouble(directory: CrawlDirectory, url: str) -> str:
    """Return the end of a sentence on a waiting URL: the fault for which its host rests, if it does."""
    with ReadBooks(directory.host_books) as book:
        host = book.host(split(url).host)
    return f"; last seen of its host: {_words(host.trouble)}" if host is not None and host.trouble else ""


def _words(trouble: str) -> str:
    outcome, mark, detail = trouble.partition(" ")
    return f"{outcome.replace('_', ' ')}{mark}{detail}"


def _hours(config: Config, host: str, now: float) -> list[str]:
    """Say that the hours of the day keep `host` from being asked, if they do."""
    hours = HostHours(config.politeness.hours, config.site)
    until = hours.opens_at(host, now)
    if until <= now:
        return []
    when = f"{datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC"
    return [f"{host} rests until {when}: its hours are {hours.text_of(host)}"]


def _host_facts(directory: CrawlDirectory, config: Config, url: str) -> list[str]:
    """Say what is known of its host: rest, failures, the line of robots.txt that decides."""
    parts, clock = split(url), crawl_clock(directory)
    facts = _hours(config, parts.host, clock.now() + clock.wall_ahead_s)
    if not any(book.exists() for book in directory.host_books):
        return facts
    with ReadBooks(directory.host_books) as book:
        host, robots = book.host(parts.host), book.robots(parts.origin)
    if parts.host in AskedLater(directory.state).blocked:
        taken_back = f"fyke unblock {directory.path} {parts.host}"
        facts.append(f"{parts.host} is blocked: nothing is requested from it until {taken_back}")
    if host is None:
        facts.append(f"no request was made to {parts.host}, or only since the last checkpoint")
    else:
        if host.retired:
            facts.append(f"{parts.host} was given up: {host.retired}")
        if host.due > clock.now():
            seen_last = f"; last seen of it: {_words(host.trouble)}" if host.trouble else ""
            facts.append(f"{parts.host} rests until {_utc(host.due + clock.wall_ahead_s)}{seen_last}")
        row = "" if host.retired else f", {counted(host.failures, 'failure')} in a row"
        facts.append(f"{parts.host} had {counted(host.pages, 'page')} fetched{row}")
    asked_s = robots.rules(config.agent.user_agent).crawl_delay_s if robots is not None else None
    if asked_s is not None:
        kept = f"; fyke waits {MAX_CRAWL_DELAY_S:g} s at most" if asked_s > MAX_CRAWL_DELAY_S else ""
        facts.append(f"robots.txt asks for {asked_s:g} s between requests{kept}")
    if robots is not None and url != robots_url(parts.origin):
        verdict = robots.rules(config.agent.user_agent).verdict(parts.target)
        word = "allows" if verdict.allowed else "forbids"
        if robots.state is RobotsState.RULES and verdict.line_number:
            facts.append(f"robots.txt {word} it in line {verdict.line_number}: {verdict.line_text}")
        elif robots.state is RobotsState.RULES:
            facts.append(f"robots.txt {word} it: no line matches it")
        else:
            facts.append(f"its host's rules: {robots.reason}")
    return facts
