"""The crawls, watched and steered: an overview, a page for each crawl and host, a stream of events, orders.

A page says in tables what its script draws; the script only keeps it fresh. Orders go to the crawl's process by its
control socket. Invariant: nothing here changes anything except `order`, which asks for the token first.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from fyke.archive.asked import host_named
from fyke.core.errors import FykeError, NotACrawl
from fyke.core.urls import pay_level_domain
from fyke.serve.hosts import known_host, known_hosts, last_visits, rules_of
from fyke.serve.known_domains import Domain, one_domain
from fyke.serve.rendering import Templates
from fyke.serve.security import Token
from fyke.serve.shelf import Shelf, ShelvedCrawl
from fyke.serve.watch import CrawlState
from fyke.serve.wording import state

TOP_DOMAINS = 15
LISTED_HOSTS = 100
VISITS = 50
ORDER_BYTES = 1 << 20
BEAT_S = 15.0  # between signs of life on a stream without news
STREAMS = 64  # at a time
ORDERS = ("pause", "resume", "stop", "seeds", "block", "unblock")
QUEUES = {
    "unchecked": "to be checked against the URLs seen",
    "later": "for pages nearer to the seeds",
    "again": "for their next visit",
    "unweighed": "for their domain's budget to be known",
    "round": "for their domain's round",
    "over_budget": "over their domain's budget",
    "without_rules": "for their host's robots.txt",
    "ready": "ready, on disk",
    "spilled": "for room at their host, on disk",
    "memory": "in memory, for their host's turn",
    "blocked": "because their host is blocked",
    "asleep": "for their host, which rests for long",
    "traps": "behind everything else, as traps",
}


class Dashboard:
    """Pages about the crawls on `shelf`; orders need `token`."""

    def __init__(self, shelf: Shelf, pages: Templates, token: Token) -> None:
        self._shelf = shelf
        self._pages = pages
        self._token = token
        self._streams = 0

    def routes(self) -> list[Route]:
        return [
            Route("/crawl", self.overview, methods=["GET"]),
            Route("/crawl/{name}", self.crawl, methods=["GET"]),
            Route("/crawl/{name}/hosts", self.hosts, methods=["GET"]),
            Route("/crawl/{name}/host/{host}", self.host, methods=["GET"]),
            Route("/crawl/{name}/events", self.events, methods=["GET"]),
            Route("/crawl/{name}/order", self.order, methods=["POST"]),
        ]

    def _crawl(self, request: Request) -> ShelvedCrawl:
        crawl = self._shelf.crawls.get(request.path_params["name"])
        if crawl is None:
            raise HTTPException(404, "There is no crawl of this name here.")
        return crawl

    # --- pages

    async def overview(self, request: Request) -> Response:
        """Answer with all crawls; if there is only one, redirect to it."""
        if len(self._shelf) == 1:
            return RedirectResponse(f"/crawl/{next(iter(self._shelf)).name}", 302)
        return self._pages.page("crawls.html", crawls=list(self._shelf))

    async def crawl(self, request: Request) -> Response:
        """Answer with the dashboard of a crawl."""
        crawl = self._crawl(request)
        domains = await run_in_threadpool(crawl.top_domains, TOP_DOMAINS)
        return self._pages.page(
            "crawl.html",
            crawl=crawl,
            latest=crawl.watch.latest,
            queues=QUEUES,
            domains=domains,
            several=len(self._shelf) > 1,
        )

    async def hosts(self, request: Request) -> Response:
        """Answer with some of the hosts that were met."""
        crawl = self._crawl(request)
        within = request.query_params.get("q", "").strip().lower()[:200]
        failing = request.query_params.get("failing", "") == "1"
        found = await run_in_threadpool(
            known_hosts, crawl.name, crawl.directory, LISTED_HOSTS, within=within, failing=failing
        )
        return self._pages.page(
            "hosts.html", crawl=crawl, hosts=found, within=within, failing=failing, most=LISTED_HOSTS
        )

    async def host(self, request: Request) -> Response:
        """Answer with all that is known of a host."""
        crawl = self._crawl(request)
        name = host_named(request.path_params["host"])
        live: Any = None
        if crawl.watch.latest.live:
            with suppress(NotACrawl):  # it has just ended
                done, said = await crawl.watch.order("host", host=name)
                live = said if done else None
        return await run_in_threadpool(self._host, crawl, name, live)

    def _host(self, crawl: ShelvedCrawl, name: str, live: Any) -> Response:
        visits = last_visits(crawl.path, name, VISITS)
        known = known_host(crawl.name, crawl.directory, name)
        domain: Domain | None = None
        with suppress(FykeError):  # no checkpoint yet: nothing is known
            domain = one_domain(crawl.directory, pay_level_domain(name))
        status = 200 if known or live or visits.rows else 404
        figures = crawl.watch.latest.figures
        return self._pages.page(
            "host.html", status, crawl=crawl, latest=crawl.watch.latest, host=name, known=known, live=live,
            visits=visits, rules=rules_of(crawl.directory, name, visits), domain=domain,
            blocked=figures is not None and name in figures.blocked,
        )  # fmt: skip

    # --- events

    async def events(self, request: Request) -> Response:
        """Answer with the state of the crawl as server-sent events: the history first, then each change."""
        crawl = self._crawl(request)
        if self._streams >= STREAMS:
            raise HTTPException(429, "Too many dashboards are open: close one.")
        return StreamingResponse(
            self._stream(crawl), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )

    async def _stream(self, crawl: ShelvedCrawl) -> AsyncIterator[str]:
        self._streams += 1
        changes = crawl.watch.changes()
        waiting: asyncio.Future[CrawlState | None] = asyncio.ensure_future(anext(changes, None))
        try:
            yield f"retry: 2000\nevent: history\ndata: {json.dumps(crawl.watch.history.samples)}\n\n"
            while True:
                done, _ = await asyncio.wait([waiting], timeout=BEAT_S)
                if not done:
                    yield ": still here\n\n"
                    continue
                latest = waiting.result()
                if latest is None:
                    return
                told = {**latest.as_dict(), "words": state(latest.state)}
                yield f"event: standing\ndata: {json.dumps(told)}\n\n"
                waiting = asyncio.ensure_future(anext(changes, None))
        finally:
            self._streams -= 1
            waiting.cancel()

    # --- orders

    async def order(self, request: Request) -> Response:
        """Have the crawl carry out an order. Needs the token, in the header X-Fyke-Token or the field `token`."""
        crawl = self._crawl(request)
        fields = await _fields(request)
        if not self._token.fits(request.headers.get("x-fyke-token") or fields.get("token", "")):
            raise HTTPException(403, "The token is missing or wrong: fyke serve printed it when it started.")
        what = fields.get("do", "")
        if what not in ORDERS:
            raise HTTPException(400, f"do must be one of {', '.join(ORDERS)}")
        if what in ("block", "unblock"):
            done, said = await crawl.watch.block(fields.get("host", "").strip(), what == "block")
            return self._answered(request, crawl, done, said)
        more: dict[str, Any] = {"urls": fields.get("urls", "").split()} if what == "seeds" else {}
        try:
            done, said = await crawl.watch.order(what, **more)
        except NotACrawl:
            raise HTTPException(
                409, "No crawl is running here: resume it with fyke crawl --into its directory."
            ) from None
        return self._answered(request, crawl, done, str(said))

    def _answered(self, request: Request, crawl: ShelvedCrawl, done: bool, said: str) -> Response:
        if "application/json" in request.headers.get("accept", ""):
            return JSONResponse({"said": said} if done else {"error": said}, 200 if done else 400)
        if not done:
            return self._pages.wrong(400, said, f"/crawl/{crawl.name}", "Back to the dashboard")
        return self._pages.page("said.html", said=said, crawl=crawl)


async def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a form, or of a JSON object. Raises HTTPException."""
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > ORDER_BYTES:
                raise HTTPException(413, "The order is too long: give fewer seeds at a time.")
        if "json" in request.headers.get("content-type", ""):
            return {str(name): str(value) for name, value in dict(json.loads(body)).items()}
        return {name: values[-1] for name, values in parse_qs(body.decode(), max_num_fields=20).items()}
    except (ValueError, TypeError, RecursionError, ClientDisconnect):
        raise HTTPException(400, "This order cannot be read: send a form, or a JSON object.") from None
