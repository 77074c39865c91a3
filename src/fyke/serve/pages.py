"""The pages of the archive: search, the copy of a page, and what is known of it.

Each method of `ArchivePages` answers one address, and runs in a thread because it reads files. Invariant: they only
read.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fyke.archive.captures import Capture
from fyke.core.errors import BadQuery, DirectoryError
from fyke.core.pages import Page
from fyke.core.urls import canonical, split
from fyke.export.prose import plain
from fyke.search.answering import FARTHEST
from fyke.search.grammar import MAX_CHARS
from fyke.search.printing import clean
from fyke.search.results import Hit, InLink, Results
from fyke.serve.copies import copy_of
from fyke.serve.differences import MOST_LETTERS, differences
from fyke.serve.rendering import Templates
from fyke.serve.search_form import PER_PAGE, SearchForm
from fyke.serve.security import COPY_POLICY, PAGE_POLICY
from fyke.serve.shelf import Shelf, ShelvedCrawl
from fyke.serve.wording import not_a_url, query_string

INLINKS = 300
COPIES_AT_ONCE = 2  # are read or made; each may take some 100 MB meanwhile
SIMILAR = 8
Held = tuple[ShelvedCrawl, Capture]
_UNSAFE_IN_NAME = re.compile(r"[^A-Za-z0-9._-]+")


class ArchivePages:
    """Search and copies of the crawls on `shelf`."""

    def __init__(self, shelf: Shelf, pages: Templates) -> None:
        self._shelf = shelf
        self._pages = pages

    def routes(self) -> list[Route]:
        heavy, light = asyncio.Semaphore(COPIES_AT_ONCE), nullcontext()
        paths: dict[str, Callable[[Request], Response]] = {
            "/": self.search,
            "/copy": self.copy,
            "/raw": self.raw,
            "/diff": self.diff,
            "/page": self.about,
        }
        return [
            Route(path, _threaded(function, light if path == "/" else heavy), methods=["GET"])
            for path, function in paths.items()
        ]

    # --- search

    def search(self, request: Request) -> Response:
        """Answer with the search box, and the hits for what was typed into it."""
        given = request.query_params
        asked = SearchForm(
            clean(given.get("q", "")[: MAX_CHARS + 1]),
            *(given.get(name, "").strip()[:200] for name in ("site", "lang", "after", "before")),
        )
        at = _whole(given.get("page", ""), 1, FARTHEST // PER_PAGE)
        results, more, trouble, wrong, pages = None, False, "", "", 0
        try:
            searcher = self._shelf.searcher()
            if asked.words.strip() or asked.filters:
                results, more = self._answer(asked, at)
            else:
                pages = searcher.pages
        except BadQuery as error:
            wrong = str(error)
        except DirectoryError as error:
            trouble = str(error)
        return self._pages.page(
            "search.html", 400 if wrong else 200, asked=asked, filters=asked.filters, at=at, results=results, more=more,
            trouble=trouble, wrong=wrong, pages=pages, crawls=list(self._shelf),
            indexed=sum(crawl.indexed for crawl in self._shelf), farthest=FARTHEST // PER_PAGE,
        )  # fmt: skip

    def _answer(self, asked: SearchForm, at: int) -> tuple[Results, bool]:
        """Return the page `at` of an answer, and whether there is another."""
        results = asked.answer(self._shelf.searcher(), (at - 1) * PER_PAGE, PER_PAGE + 1)
        return results, len(results.hits) > PER_PAGE

    # --- copies

    def copy(self, request: Request) -> Response:
        """Answer with the archived copy of a page in its frame, below a bar that says what it is."""
        url = self._url(request)
        found = self._shelf.captures(url)
        chosen = self._chosen(request, url)
        if chosen is None:
            return self._pages.wrong(
                404, f"There is no copy of {url}", f"/page{query_string(url=url)}", "Facts of this page"
            )
        crawl, capture = chosen
        others = [one for _, one in found if one.stamp != capture.stamp][:20]
        page = crawl.page(capture)
        headers = {"Content-Security-Policy": PAGE_POLICY.format("'self'")}
        return self._pages.page(
            "copy.html",
            headers=headers,
            url=url,
            crawl=crawl,
            capture=capture,
            others=others,
            page=page,
            leads_to=_leads_to(page) if 300 <= capture.status < 400 else None,
        )

    def raw(self, request: Request) -> Response:
        """Answer with the content of the frame: the copy, made harmless, of an origin of its own."""
        url = self._url(request)
        chosen = self._chosen(request, url)
        page = chosen[0].page(chosen[1]) if chosen else None
        headers = {"Content-Security-Policy": COPY_POLICY, "X-Frame-Options": "SAMEORIGIN"}
        if chosen is None or page is None:
            return Response("This copy cannot be read.", 404, headers, "text/plain")
        if request.query_params.get("save"):
            headers["Content-Disposition"] = f'attachment; filename="{_file_name(url)}"'
            return Response(page.content, 200, headers, "application/octet-stream")
        crawl, capture = chosen
        copy = copy_of(page, lambda url: _part(crawl, url, capture.taken_at))
        return Response(copy.content, 200, {**headers, "Content-Type": copy.content_type})

    def diff(self, request: Request) -> Response:
        """Answer with the differences in text between a copy and an earlier one, each of a date that can be chosen."""
        url = self._url(request)
        found = _versions(one for one in self._shelf.captures(url) if one[1].is_page)
        if len(found) < 2:
            there = "one version" if found else "no copy"
            return self._pages.wrong(
                404, f"There is {there} of {url}", f"/page{query_string(url=url)}", "Facts of this page"
            )
        old_at, new_at = (_moment(request.query_params.get(name, "")) for name in ("old", "new"))
        new = _as_of(found, new_at)
        old = _as_of(found, old_at) if old_at else found[min(found.index(new) + 1, len(found) - 1)]
        texts = [plain(page) if (page := crawl.page(one)) is not None else None for crawl, one in (old, new)]
        blocks = None if None in texts else differences(texts[0] or "", texts[1] or "")
        return self._pages.page(
            "diff.html",
            url=url,
            captures=[one for _, one in found],
            old=old[1],
            new=new[1],
            blocks=blocks,
            same=old[1].digest == new[1].digest,
            most=MOST_LETTERS,
            cut=any(text is not None and len(text) > MOST_LETTERS for text in texts),
        )

    def _chosen(self, request: Request, url: str) -> tuple[ShelvedCrawl, Capture] | None:
        return self._shelf.capture(url, _moment(request.query_params.get("at", "")))

    # --- what is known

    def about(self, request: Request) -> Response:
        """Answer with what the crawls know of a URL, which pages link to it, and which are like it."""
        url = self._url(request)
        answers = [(crawl, answer) for crawl in self._shelf if (answer := crawl.why(url)) is not None]
        links: tuple[InLink, ...] = ()
        similar: tuple[Hit, ...] = ()
        trouble = ""
        try:
            searcher = self._shelf.searcher()
            links, similar = searcher.inlinks(url, INLINKS), searcher.similar(url, SIMILAR)
        except DirectoryError as error:
            trouble = str(error)
        return self._pages.page(
            "page.html", url=url, host=split(url).host, answers=answers, captures=self._shelf.captures(url)[:50],
            links=_by_page(links), cut=len(links) >= INLINKS, similar=similar, trouble=trouble,
        )  # fmt: skip

    def _url(self, request: Request) -> str:
        """Return the URL that is asked about. Raises BadUrl."""
        asked = request.query_params.get("url", "").strip()
        url = canonical(asked) or (canonical(f"http://{asked}") if asked and "://" not in asked else None)
        if url is None:
            raise not_a_url(asked)
        return url


def _leads_to(page: Page | None) -> str | None:
    """Return where a redirect leads; None if it leads nowhere that could be crawled."""
    location = page.exchange.location if page else ""
    return canonical(location, page.url) if page and location else None


def _part(crawl: ShelvedCrawl, url: str, at: datetime) -> Page | None:
    """Return the part of a copy that was archived nearest to the time `at`; of two as near, the later."""
    found = [one for one in crawl.captures.of(url) if one.is_page]
    nearest = min(found, key=lambda one: (abs(one.taken_at - at), at - one.taken_at), default=None)
    return crawl.page(nearest) if nearest else None


def _versions(found: Iterable[Held]) -> list[Held]:
    """Return those of `found`, newest first, whose bytes differ from the next older copy."""
    versions: list[Held] = []
    for one in found:
        if versions and versions[-1][1].digest == one[1].digest:
            versions.pop()
        versions.append(one)
    return versions


def _as_of(found: Sequence[Held], at: datetime | None) -> Held:
    """Return the one of `found`, newest first, that was current at a time, otherwise the oldest; the newest without a
    time."""
    return next((one for one in found if at is None or one[1].taken_at <= at), found[-1])


def _by_page(links: Sequence[InLink]) -> list[dict[str, Any]]:
    """Return `links` with all words of a page together, the pages in their order."""
    pages: dict[str, dict[str, Any]] = {}
    for link in links:
        pages.setdefault(link.url, {"url": link.url, "title": link.title, "words": []})["words"].append(link.words)
    return list(pages.values())


def _threaded(
    function: Callable[[Request], Response], room: AbstractAsyncContextManager[None]
) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        async with room:
            return await run_in_threadpool(function, request)

    return answer


def _whole(text: str, least: int, most: int) -> int:
    """Return `text` as a number between the two; `least` if it is no number."""
    return min(max(int(text), least), most) if text.isascii() and text.isdigit() and len(text) < 9 else least


def _moment(stamp: str) -> datetime | None:
    """Return the time of 14 digits; None for other text."""
    try:
        return datetime.strptime(stamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _file_name(url: str) -> str:
    """Return the name of a saved copy: the end of its path, in plain letters."""
    name = unquote(split(url).target.partition("?")[0].rstrip("/").rpartition("/")[2])
    return _UNSAFE_IN_NAME.sub("-", name).strip(".-")[:80] or "page"
