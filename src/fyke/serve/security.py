"""What a browser may do with our pages, and who may give orders.

`Guard` wraps the whole application; `order` asks `Token`. There are no cookies, so a browser sends nothing that a page
did not mean to send; an order needs the token, in a header or a form field.

Invariant: every response says which scripts and frames it allows; none allows inline script or another origin. While we
listen on this machine only, a foreign host name (DNS rebinding) is refused.
"""

import hmac
import re
import secrets
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fyke.core.errors import ConfigurationError

LEAST_TOKEN = 8
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src {};"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
COPY_POLICY = (  # of an archived page: an origin of its own, no script, nothing loaded
    "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none';"
    " frame-ancestors 'self'"
)
_AUTHORITY = re.compile(r"(?:\[([^\[\]]*)\]|([^\[\]:]*))(?::[0-9]*)?")
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class Token:
    """The word that orders need. Raises ConfigurationError if it is easily guessed."""

    def __init__(self, given: str | None = None) -> None:
        if given is not None and len(given) < LEAST_TOKEN:
            raise ConfigurationError(
                f"--token: give at least {LEAST_TOKEN} characters, or leave it out to get a new one"
            )
        self.text = given if given is not None else secrets.token_urlsafe(24)

    def __repr__(self) -> str:
        return "Token(…)"

    def fits(self, offered: str) -> bool:
        """Return whether `offered` is the token; takes the same time whatever is wrong with it."""
        return hmac.compare_digest(offered.encode("utf-8", "replace"), self.text.encode("utf-8", "replace"))


class Guard:
    """The application `app` with our headers; `host` is the address that we listen on."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app = app
        self._local = _is_loopback(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add(MutableHeaders(scope=message))
            await send(message)

        if self._local and not _is_loopback(_name_of(Headers(scope=scope).get("host", ""))):
            refusal = PlainTextResponse("This server answers only to the names of this machine.\n", 421)
            await refusal(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)


def _add(headers: MutableHeaders) -> None:
    for name, value in _ALWAYS.items():
        headers.setdefault(name, value)
    if "content-security-policy" not in headers:
        headers["Content-Security-Policy"] = PAGE_POLICY.format("'none'")
        headers["X-Frame-Options"] = "DENY"
    headers.setdefault("Cache-Control", "no-store")


def _name_of(authority: str) -> str:
    """Return the host in a Host header, without its port; empty if there is none."""
    match = _AUTHORITY.fullmatch(authority)
    return "" if match is None else match[1] or match[2]


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
