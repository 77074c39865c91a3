"""The figures for Prometheus, and an answer for programs that ask whether the server lives.

They are read from what the watches know already, so a scrape costs a crawl nothing.
"""

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fyke.metrics import MEDIA_TYPE, CrawlFigures, exposition
from fyke.serve.shelf import Shelf, ShelvedCrawl


def routes(shelf: Shelf) -> list[Route]:
    """Return `/metrics` and `/healthz`."""

    async def metrics(request: Request) -> Response:
        return Response(exposition([_figures(crawl) for crawl in shelf]), media_type=MEDIA_TYPE)

    async def healthz(request: Request) -> Response:
        return JSONResponse({"status": "ok", "crawls": len(shelf)})

    return [Route("/metrics", metrics, methods=["GET"]), Route("/healthz", healthz, methods=["GET"])]


def _figures(crawl: ShelvedCrawl) -> CrawlFigures:
    now = crawl.watch.latest
    told = CrawlFigures(crawl.name, now.live, now.state == "paused", now.at)
    return told if now.figures is None else replace(told, statistics=now.figures.statistics)
