"""The same as the pages, for programs: JSON, described by an OpenAPI document.

The application makes it once. Answers are the dataclasses of the other rooms; several crawls answer as one. Docstrings
here are part of the OpenAPI document. Invariant: every answer is as the document at `/api/openapi.json` says, mistakes
too: `{"error": "…"}`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from fyke.core.errors import NotACrawl
from fyke.core.urls import canonical
from fyke.search.answering import FARTHEST
from fyke.search.results import Hit, InLink, Results
from fyke.serve.hosts import KnownHost, known_hosts
from fyke.serve.known_domains import Domain, top_domains
from fyke.serve.rendering import Templates
from fyke.serve.search_form import MOST, PER_PAGE, SearchForm
from fyke.serve.shelf import Shelf, ShelvedCrawl
from fyke.serve.wording import not_a_url

Url = Annotated[str, Query(description="The URL of a page, with its scheme.", examples=["https://example.org/"])]
Limit = Annotated[int, Query(ge=1, le=MOST, description="Most results to return.")]
CrawlName = Annotated[str, Query(max_length=200, description="The name of one crawl; empty: all.")]
Within = Annotated[str, Query(max_length=200, description="Only names that contain this.")]
Filter = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with a request, in one line."""

    error: str


@dataclass(frozen=True, slots=True)
class CopyFacts:
    """A copy in the archive."""

    crawl: str
    taken_at: datetime
    status: int
    media_type: str
    digest: str
    warc_file: str
    warc_offset: int
    warc_length: int


@dataclass(frozen=True, slots=True)
class CrawlFacts:
    """Facts of one crawl about a URL."""

    crawl: str
    verdict: str
    facts: list[str]


@dataclass(frozen=True, slots=True)
class PageFacts:
    """All facts about a URL."""

    url: str  # in its canonical form
    crawls: list[CrawlFacts]
    copies: list[CopyFacts]


@dataclass(frozen=True, slots=True)
class LinksResponse:
    url: str
    links: list[InLink]


@dataclass(frozen=True, slots=True)
class Similar:
    url: str
    pages: list[Hit]


@dataclass(frozen=True, slots=True)
class StatusResponse:
    """The state of a crawl; `figures` are those of its control socket, or of its newest checkpoint."""

    name: str
    directory: str
    indexed: bool
    state: str  # running, paused, stopped, finished, killed, ..., or none
    live: bool
    at: float  # unix seconds
    pages_s: float
    bytes_s: float
    trouble: str
    figures: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CrawlDomain:
    crawl: str
    domain: Domain


_MISTAKES: dict[int | str, dict[str, Any]] = {
    400: {"model": Mistake, "description": "The request cannot be understood."},
    404: {"model": Mistake, "description": "There is no such crawl, or no index yet."},
    422: {"model": Mistake, "description": "A value is of the wrong kind or size."},
}


def router(shelf: Shelf, pages: Templates) -> APIRouter:
    """Return the addresses under `/api`."""
    api = APIRouter(prefix="/api", responses=_MISTAKES)
    answers = _Endpoints(shelf)
    for path, function in (
        ("/search", answers.search),
        ("/page", answers.page),
        ("/inlinks", answers.inlinks),
        ("/similar", answers.similar),
        ("/status", answers.status),
        ("/hosts", answers.hosts),
        ("/domains", answers.domains),
    ):
        api.add_api_route(path, function, methods=["GET"])

    def document(request: Request) -> Response:
        app: FastAPI = request.app
        return pages.page("api.html", document=app.openapi())

    api.add_api_route("", document, methods=["GET"], include_in_schema=False)
    return api


class _Endpoints:
    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def search(
        self,
        q: Annotated[str, Query(max_length=2000, description="Words and operators, as in the search box.")] = "",
        offset: Annotated[int, Query(ge=0, le=FARTHEST)] = 0,
        limit: Limit = PER_PAGE,
        site: Filter = "",
        lang: Filter = "",
        after: Filter = "",
        before: Filter = "",
    ) -> Results:
        """Return the pages that answer a query."""
        return SearchForm(q, site, lang, after, before).answer(self._shelf.searcher(), offset, limit)

    def page(self, url: Url) -> PageFacts:
        """Return what happened to a URL, and its copies."""
        known = _canonical(url)
        answers = [(crawl.name, answer) for crawl in self._shelf if (answer := crawl.why(known)) is not None]
        crawls = [CrawlFacts(name, answer.verdict, answer.facts) for name, answer in answers]
        copies = [
            CopyFacts(
                crawl.name, one.taken_at, one.status, one.media_type, one.digest, one.file, one.offset, one.length
            )
            for crawl, one in self._shelf.captures(known)
        ]
        return PageFacts(known, crawls, copies)

    def inlinks(self, url: Url, limit: Limit = MOST) -> LinksResponse:
        """Return the links to a page, each with its words."""
        known = _canonical(url)
        return LinksResponse(known, list(self._shelf.searcher().inlinks(known, limit)))

    def similar(self, url: Url, limit: Limit = PER_PAGE) -> Similar:
        """Return pages like a page."""
        known = _canonical(url)
        return Similar(known, list(self._shelf.searcher().similar(known, limit)))

    def status(self) -> list[StatusResponse]:
        """Return the state of each crawl."""
        return [
            StatusResponse(crawl.name, str(crawl.path), crawl.indexed, **crawl.watch.latest.as_dict())
            for crawl in self._shelf
        ]

    def hosts(
        self,
        crawl: CrawlName = "",
        q: Within = "",
        failing: Annotated[bool, Query(description="Only hosts that fail or were given up.")] = False,
        limit: Limit = MOST,
    ) -> list[KnownHost]:
        """Return hosts that were met."""
        found = [
            host for one in self._crawls(crawl) for host in known_hosts(one.name, one.directory, limit, q, failing)
        ]
        return found[:limit]

    def domains(self, crawl: CrawlName = "", q: Within = "", limit: Limit = MOST) -> list[CrawlDomain]:
        """Return the pay-level domains that most others link to, with their budgets."""
        found = []
        for one in self._crawls(crawl):
            try:
                domains = top_domains(one.directory, limit, q) if q else one.top_domains(limit)
            except NotACrawl:  # an archive without the state of a crawl
                continue
            found += [CrawlDomain(one.name, domain) for domain in domains]
        found.sort(key=lambda each: (-each.domain.in_degree, -each.domain.urls))
        return found[:limit]

    def _crawls(self, name: str) -> list[ShelvedCrawl]:
        if not name:
            return list(self._shelf)
        if name not in self._shelf.crawls:
            raise HTTPException(
                404, f"there is no crawl {name[:200]!r} here; the crawls are: {', '.join(self._shelf.crawls)}"
            )
        return [self._shelf.crawls[name]]


def _canonical(url: str) -> str:
    """Return `url` in its canonical form. Raises BadUrl."""
    found = canonical(url)
    if found is None:
        raise not_a_url(url)
    return found
