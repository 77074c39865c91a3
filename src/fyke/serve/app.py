"""The application: all rooms of the house behind one door.

`fyke.serve.server` makes it, and tests do. Addresses under `/api/` answer mistakes in JSON, all others with a page.
Invariant: a person's mistake is a 4xx with one line that says what to do, whatever was sent.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from fyke.core.errors import BadUrl, ConfigurationError, DirectoryError, DirectoryInUse, FykeError, StateDamaged
from fyke.core.version import VERSION
from fyke.serve.api import router
from fyke.serve.dashboard import Dashboard
from fyke.serve.metrics import routes as metrics_routes
from fyke.serve.pages import ArchivePages
from fyke.serve.rendering import HERE, Templates
from fyke.serve.security import Guard, Token
from fyke.serve.shelf import Shelf

API = "/api/"


def application(shelf: Shelf, token: Token, host: str = "127.0.0.1") -> ASGIApp:
    """Return all that is served of `shelf`; orders need `token`; `host` is the address that we listen on."""
    pages = Templates()

    @asynccontextmanager
    async def watching(app: FastAPI) -> AsyncIterator[None]:
        for crawl in shelf:
            await crawl.watch.look()
        tasks = [asyncio.create_task(crawl.watch.run()) for crawl in shelf]
        yield
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    app = FastAPI(
        title="Fyke",
        version=VERSION,
        summary="An archive, searched; and the crawls that fill it.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=watching,
    )
    app.include_router(router(shelf, pages))
    app.router.routes += [
        *ArchivePages(shelf, pages).routes(),
        *Dashboard(shelf, pages, token).routes(),
        *metrics_routes(shelf),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    _answer_mistakes(app, pages)
    return Guard(app, host)


def _answer_mistakes(app: FastAPI, pages: Templates) -> None:
    def said(request: Request, status: int, what: str, headers: dict[str, str] | None = None) -> Response:
        if request.url.path.startswith(API) or "application/json" in request.headers.get("accept", ""):
            return JSONResponse({"error": what}, status, headers)
        return pages.wrong(status, what)

    def ours(request: Request, error: Exception) -> Response:
        status = 503  # the disk, or a crawl that is just writing; ask again
        if isinstance(error, BadUrl | ConfigurationError):
            status = 400
        elif isinstance(error, DirectoryError) and not isinstance(error, DirectoryInUse | StateDamaged):
            status = 404
        return said(request, status, str(error))

    def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers) if error.headers else None
        return said(request, error.status_code, str(error.detail), headers)

    def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"][1:])
        return said(request, 422, f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}")

    app.add_exception_handler(FykeError, ours)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
