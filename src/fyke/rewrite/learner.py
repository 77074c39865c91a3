"""`fyke rewrite`: the rules that hold at each site of a crawl, written into a file beside it.

For each site (`fetched`) it finds the rules that may hold (`candidates`), and tests them (`learning`). Contents are
compared by what they say (`harvest/prints`). If a session id is in the URL and also in every link of the page, they are
compared without it. So pages whose path others have as well are read from the archive. If numbers in their text
change at every request (`noise`), they are read once more, and compared without. Such rules are verified like those
for views, which show less of a page (`views`).

Rules that may hold, but too few pages say so, are returned beside them. So are pages that say much the same under
several URLs, but never the same: their text may change at every request, and nothing is learned from them.

Invariant: the crawl may run meanwhile; only the file of rules is written.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from fyke.archive.directory import CrawlDirectory
from fyke.core.own_marks import marks_of
from fyke.core.pages import Page
from fyke.core.rewrite_rules import FILE, Rule, Shape, render
from fyke.core.rewriting import Rewriter
from fyke.core.telling import Tell
from fyke.core.urls import main_name, split
from fyke.disk.files import write_whole
from fyke.harvest.prints import Place, number_of, whole_prints
from fyke.rewrite.candidates import at_paths, candidates, contents_of, is_index_page, values
from fyke.rewrite.fetched import AnsweredPage, places, sites
from fyke.rewrite.learning import (
    FEW_SUPPORT,
    LEAST_SUPPORT,
    Content,
    SameContents,
    accepted,
    hosts_that_merge,
    short_of_support,
)
from fyke.rewrite.likeness import PrintsOfSite, different, usual_words, without
from fyke.rewrite.mirrors import mirrors
from fyke.rewrite.noise import Numbers, noise, numbers_of
from fyke.rewrite.standing import by_standing
from fyke.rewrite.views import views
from fyke.search.archived import ArchiveReader

MOST_READ = 20_000  # pages of a site from the archive
MOST_COMPARED = 2_000  # whose numbers are compared


class RestlessPages(NamedTuple):
    """The pages of a site whose text may change at every request: their number, and two URLs of one."""

    pages: int
    example: tuple[str, str]


class LearnedRules(NamedTuple):
    """Rules that hold; others that may hold, but too few pages say so, each with their number as its `support`; sites
    with pages from which nothing is learned."""

    rules: list[Rule]
    short: list[Rule]
    restless: list[RestlessPages]


def learn(folder: Path, progress: Tell) -> LearnedRules:
    """Learn the rules of the crawl in `folder`, and write those that hold to its file; `progress` hears of each site.

    Raises NotACrawl, StateDamaged, DiskFull, DirectoryError.
    """
    CrawlDirectory(folder).config()
    rules: list[Rule] = []
    short: list[Rule] = []
    restless: list[RestlessPages] = []
    with ArchiveReader(folder) as reader:
        for number, (name, pages) in enumerate(sites(folder), 1):
            progress(f"site {number:,}: {name}", 0, 0)
            contents, changing = _printed(pages, reader)
            if changing:
                contents, _ = _printed(pages, reader, changing)
            found = [rule.model_copy(update={"view": bool(changing)}) for rule in rules_of_site(name, contents)]
            seen = list(views(pages, found, partial(_read, reader), changing))
            found += [view for view in seen if view.support >= LEAST_SUPPORT]
            rules += found
            short += [*short_of_site(contents, found), *(view for view in seen if view.support < LEAST_SUPPORT)]
            restless += filter(None, [restless_pages(contents, found)])
        rules.sort(key=lambda rule: main_name(rule.host))
        progress("copies of hosts", 0, 0)
        rules += mirrors(lambda: places(folder), lambda page: _said_by(page, reader), partial(by_standing, folder))
    write_whole(folder / FILE, render(rules).encode())
    return LearnedRules(rules, short, restless)


def _printed(
    pages: Sequence[AnsweredPage], reader: ArchiveReader, without: frozenset[Place] = frozenset()
) -> tuple[list[Content], frozenset[Place]]:
    """Return `pages` with their contents, without the ids of their own URLs and numbers at the places `without`; and
    the places of numbers that change at every request. Unreadable pages are left out."""
    printed, left, read, prints = list[AnsweredPage](), MOST_READ, list[str](), PrintsOfSite()
    paths = Counter(_path(page.url) for page in pages if page.fingerprint)
    numbers = list[tuple[str, str, Numbers]]()
    for page in pages:
        wanted = page.fingerprint and len(pages) >= 2 * LEAST_SUPPORT and page.row["warc_file"]
        if wanted and (paths[_path(page.url)] > 1 or any(marks_of(page.url))):
            left -= 1
            found = reader.read(page.row) if left >= 0 else None
            if found is None:
                continue
            read.append(page.url)
            said = whole_prints(found.content, page.row["media_type"], page.url, without)
            prints.add(said)
            if len(numbers) < MOST_COMPARED and not without:
                numbers.append((_path(page.url), page.url, numbers_of(said[0].words)))
        printed.append(page)
    known, same = dict(zip(read, prints.pages(), strict=True)), SameContents()
    for page in printed:
        if page.url in known:
            same.join([page.fingerprint, *known[page.url][0]])
    outlines = {url: said for url, (_, said) in known.items()}
    contents = [Content(page.url, same.first(page.fingerprint), outlines.get(page.url)) for page in printed]
    return contents, noise(numbers)


def _said_by(page: AnsweredPage, reader: ArchiveReader) -> int:
    """Return the number of what `page` says; 0 if it cannot be read."""
    found = _read(reader, page)
    return 0 if found is None else number_of(found.content, page.row["media_type"])


def _read(reader: ArchiveReader, page: AnsweredPage) -> Page | None:
    return reader.read(page.row) if page.row["warc_file"] else None


def _path(url: str) -> str:
    """Return the path of a canonical URL, without parameters and the name of an index page: URLs of one path may be one
    page."""
    folder, _, name = url.split("/", 3)[3].partition("?")[0].rpartition("/")
    name = name.partition(";")[0]
    return f"{folder}/" if is_index_page(name) else f"{folder}/{name}"


def rules_of_site(name: str, pages: Sequence[Content]) -> list[Rule]:
    """Return the rules that hold for `pages` of the site `name`."""
    if len(pages) < 2 * LEAST_SUPPORT:
        return []
    of_host: dict[str, list[Content]] = {}
    for page in pages:
        of_host.setdefault(split(page.url).host, []).append(page)
    main = _main_host(name, {host: sum(page.content != 0 for page in of_host[host]) for host in of_host})
    moves = [Rule(shape=Shape.HOST, host=host, to=main) for host in sorted(of_host) if host != main]
    if moves:
        found = _of_host(main, pages, moves)
        merged = hosts_that_merge(found)
        if len(merged) == len(moves):
            return found
        rest = [page for page in pages if split(page.url).host in {main, *merged}]
        rules = _of_host(main, rest, [move for move in moves if move.host in merged])
        apart = [host for host in of_host if host not in {main, *merged}]
        return rules + [rule for host in apart for rule in _of_host(host, of_host[host], [])]
    return _of_host(main, pages, [])


def short_of_site(pages: Sequence[Content], rules: Sequence[Rule]) -> Iterator[Rule]:
    """Yield the rules that may hold for `pages` of a site beside its `rules`, but too few of them say so."""
    of_host: dict[str, list[Content]] = defaultdict(list)
    for page in pages:
        of_host[split(page.url).host].append(page)
    for host, some in sorted(of_host.items()):
        contents = contents_of((page.url, page.content) for page in some)
        likely = candidates(host, [page.url for page in some], contents, FEW_SUPPORT)
        yield from short_of_support(likely, rules, some)


def restless_pages(pages: Sequence[Content], rules: Sequence[Rule]) -> RestlessPages | None:
    """Return what is known of the paths of a site whose URLs, as `rules` leave them, say much the same, but never the
    same; None if there are fewer than `LEAST_SUPPORT` such paths."""
    rewriter = Rewriter(rules)
    at: dict[str, dict[str, Content]] = defaultdict(dict)
    for page in _without_header(pages, rules):
        if page.content and page.outline is not None:
            at[_path(page.url)].setdefault(rewriter.rewrite(page.url).url, page)
    found = []
    for some in map(list, map(dict.values, at.values())):
        outlines = [page.outline for page in some if page.outline is not None]
        if len({page.content for page in some}) == len(some) > 1 and different(outlines) == 1:
            found.append((some[0].url, some[1].url))
    return RestlessPages(len(found), found[0]) if len(found) >= LEAST_SUPPORT else None


def _main_host(name: str, pages: Mapping[str, int]) -> str:
    """Return the host with the most `pages` (a number for each), or the site's `name` if that has half as many."""
    most = max(pages, key=lambda host: (pages[host], host))
    return name if 2 * pages.get(name, 0) >= pages[most] else most


def _of_host(host: str, pages: Sequence[Content], moves: Sequence[Rule]) -> list[Rule]:
    """Return the rules that hold for `pages` of `host` and of hosts that `moves` lead to it, with `moves`."""
    contents = contents_of((page.url, page.content) for page in pages)
    likely = [*moves, *candidates(host, [page.url for page in pages], contents)]
    pages = _without_header(pages, likely)
    rules = accepted(likely, pages)
    dropped = {rule.key for rule in rules if rule.shape is Shape.DROP_KEY}
    for further in (at_paths, values):
        more = list(further(host, dropped, contents))
        rules = accepted([*rules, *more], pages) if more else rules
    return rules


def _without_header(pages: Sequence[Content], likely: Sequence[Rule]) -> list[Content]:
    """Return `pages` without what most of them say. Pages that all `likely` rules together make one count once."""
    rewriter = Rewriter(likely)
    one_each = {rewriter.rewrite(page.url).url: page.outline for page in pages if page.outline is not None}
    usual = usual_words(list(one_each.values()))
    return [Content(url, content, None if said is None else without(said, usual)) for url, content, said in pages]
