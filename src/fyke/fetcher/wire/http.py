"""HTTP and HTTPS: words the request, reads the head, says what the status means.

Called by the registry. The head of the request is composed here, in libcurl's order, because asking libcurl what it
sent costs a callback for every event. A test compares the two byte for byte. With HTTP/2, request and head are recorded
in the form of HTTP/1.1, as WARC tools expect, and `effective_protocol` says "h2".

A Content-Length that is no number is passed over (Fetch Standard, "extract a length"). The visit is broken off and made
again, as usual, this time to the end of the connection. Several lengths that differ are treated alike, because libcurl
does not tell the two faults apart.

A head that asks for patience or leads on (`BY_HEAD`) counts whatever becomes of the body. A body that breaks off behind
such a head, or is too long, is archived as truncated, and `detail` says why. Any other page whose body breaks off or
stalls is asked for again. If the last try does so too, what came is archived, and the head says what it was
(`last_outcome`); so it is if the rest of a body follows no protocol. If the last try brings nothing, what came
before is used (`fyke.fetcher.beginnings`).

- A 3xx with a Location is REDIRECTED. Without one it is OK (300 may carry a list of choices).
- A 304 is UNCHANGED if the request asked for it (`condition_of`), otherwise a BAD_ANSWER.
- A 305 or 306 is a BAD_ANSWER, even with a Location. It would be the name of a proxy, which no stranger chooses for us
  (RFC 9110, 15.4.6 and 15.4.7).
- A 206 with a part of the page is a BAD_ANSWER, because we ask for no part. One that has all of it, or does not say, is
  OK.
- A 421 that came on a kept connection is asked for once more, on a new one, as if the connection had broken (RFC 9110,
  15.5.20). So is a 408, which servers also say before they end a connection that waited. On a new one it is a
  CLIENT_ERROR.
- A 412 to a request with a condition says nothing of the page. `FaultDesk` lets it be visited once more, and then it is
  asked for without the condition.
- A 101 is final and a BAD_ANSWER, because we never ask for another protocol; no HTTP follows it (RFC 9110, 15.2.2).

Invariants: `exchange.head` is the final answer's, without interim answers (1xx) and trailers. An exchange whose outcome
is `answered` has a head, with a version that we know.
"""

import re
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from os import fsencode
from typing import Any

import pycurl

from fyke.core.config import AgentSection
from fyke.core.decoding import accepted_codings
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, Purpose, Visit, headers_of
from fyke.fetcher.access import HIDDEN, Access, Sites
from fyke.fetcher.wire.body_end import BodyEnd, is_uncoded, overlooked_end
from fyke.fetcher.wire.curl import CurlClient
from fyke.fetcher.wire.request import Done, Option, Request
from fyke.fetcher.wire.transfer import note

PROXY_REFUSED = 407
PRECONDITION_FAILED = 412
OF_CONNECTION = {408: "the connection waited for too long", 421: "the connection is not for this site"}
_NEVER_FOLLOWED = frozenset({305, 306})
BY_HEAD = frozenset({Outcome.THROTTLED, Outcome.REDIRECTED})  # whose bodies we do not need
_WAITED = frozenset({Outcome.STALLED, Outcome.TIMED_OUT})
ORDINARY = Access()
_SUPPRESS_CONNECT_HEADERS = 265  # CURLOPT_SUPPRESS_CONNECT_HEADERS, which pycurl does not name

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

_NO_LENGTH = "Invalid Content-Length"  # libcurl's words, as a test knows
_VALIDATOR = re.compile(r"(?!\*)[!-~](?:[ -~]{0,250}[!-~])?")
_CODED_TAG = re.compile(r'((?:W/)?"[^"]+)-(?:gzip|br|zstd)"')
_BLANK = re.compile(rb"\n\r*\n")
_INTERIM = re.compile(rb"HTTP/\S{1,8} 1(?!01)")
_FETCHED = re.compile(rb"HTTP/\S{1,8} 2")
_RANGE = re.compile(r"bytes[ =]0+-(\d{1,18})/(\d{1,18})", re.IGNORECASE)
_PROTOCOLS = {b"HTTP/1.1": "http/1.1", b"HTTP/1.0": "http/1.0", b"HTTP/2 ": "h2", b"HTTP/3 ": "h3"}


def agent_name(agent: AgentSection) -> str:
    """Return the User-Agent value: product token, version, and how to reach the people behind it."""
    name = f"{agent.user_agent}/{version('fyke')}"
    return f"{name} (+{agent.contact})" if agent.contact else name


class Http:
    """The protocol module for `http` and `https`."""

    schemes = ("http", "https")

    def __init__(self, curl: CurlClient, agent: AgentSection, access: Access = ORDINARY) -> None:
        """`access` says in what way sites are asked."""
        self._curl = curl
        self._access = access
        self._name = " ".join(filter(None, (agent_name(agent), access.user_agent_suffix)))
        own = [("Accept", ACCEPT), ("Accept-Encoding", ", ".join(accepted_codings()))]
        asked = {name.lower() for name, _ in access.headers}
        fields = [*(field for field in own if field[0].lower() not in asked), *access.headers]
        self._fields = [f"{name}: {value}".encode() for name, value in fields]
        self._shown = [f"{name}: {HIDDEN if name in access.hidden else value}" for name, value in fields]
        self._lengthless: set[int] = set()  # keys of URLs whose Content-Length was no number
        self._broke: set[int] = set()  # keys of URLs that libcurl would have asked for again, perhaps because of HTTP/2
        self._in_http_1: set[int] = set()  # keys of such URLs that are being asked for in HTTP/1.1
        self._unconditional: set[int] = set()  # keys of URLs that answered a condition with 412
        self._misdirected: set[int] = set()  # keys of URLs that were asked for on a wrong connection
        self._old_ports: set[int] = set()  # our ends of connections whose last answer was HTTP/1.0

    def fetch(self, visit: Visit, address: str, done: Done) -> None:
        """Start fetching `visit` from `address`; `done` is called once."""
        to_the_end, http_1 = visit.key in self._lengthless, visit.key in self._broke
        if http_1 and visit.url.startswith("https:"):  # once: the server may speak HTTP/2 alone
            self._broke.discard(visit.key)
            note(visit.key, self._in_http_1)
        anew = visit.key in self._misdirected
        self._misdirected.discard(visit.key)
        condition = "" if visit.key in self._unconditional else condition_of(visit)
        fields, shown = self._fields, self._shown
        if condition:
            fields, shown = [*fields, condition.encode()], [*shown, condition]
        server = "" if self._access.proxy else address  # a proxy looks names up for itself
        head = self.request_head(visit.url, shown)
        is_limited = self._access.media_bytes and visit.purpose is Purpose.PAGE
        longest = self._longest if is_limited else None
        self._curl.start(Request(visit, server, self, head, fields, longest, _ending, http_1, to_the_end, anew), done)

    def _longest(self, lines: Sequence[bytes]) -> tuple[int, str] | None:
        """Return the most bytes that an answer with this head may have by its media type, and the reason; None for no
        limit. If the head says that it has more, the limit is -1, which breaks it off at once."""
        head = final_head(lines)
        if not _FETCHED.match(head):
            return None
        media_type = _essence(headers_of(head, "content-type"))
        most = self._access.longest(media_type)
        if most is None:
            return None
        too_long = any(
            length.isascii() and length.isdigit() and int(length[:18]) > most
            for length in headers_of(head, "content-length")
        )
        return (
            -1 if too_long else most,
            f"longer than the {most:,} bytes that media_bytes of a [[site]] table allows for {media_type}",
        )

    def request_head(self, url: str, fields: Sequence[str]) -> bytes:
        """Return the request for a canonical `url` with header `fields`, as on the wire except for secrets."""
        start = url.index("//") + 2
        path = url.index("/", start)
        rest = "\r\n".join(["", f"User-Agent: {self._name}", *fields, "", ""])
        return f"GET {url[path:]} HTTP/1.1\r\nHost: {url[start:path]}{rest}".encode()

    def options(self) -> Iterable[Option]:
        """Return what libcurl must know once for each handle."""
        access = self._access
        options: list[Option] = [(pycurl.USERAGENT, self._name)]
        if access.certificate:
            options += [(pycurl.SSLCERT, fsencode(access.certificate)), (pycurl.SSLKEY, fsencode(access.key))]
            options += [(pycurl.KEYPASSWD, access.key_password.encode())]  # empty too, or OpenSSL asks the terminal
        if access.proxy:
            options += [(pycurl.PROXY, access.proxy), (pycurl.NOPROXY, ""), (_SUPPRESS_CONNECT_HEADERS, 1)]
            options += [(pycurl.HEADEROPT, pycurl.HEADER_SEPARATE)]  # no header of ours for a proxy that makes a tunnel
        if access.proxy_user:  # not PROXYUSERPWD, which takes %41 for A
            options += [(pycurl.PROXYUSERNAME, access.proxy_user.encode())]
            options += [(pycurl.PROXYPASSWORD, access.proxy_password.encode())]
        return options

    def conclude(self, exchange: Exchange, lines: list[bytes], curl: Any) -> None:
        """Fill in head, status and outcome of an answer."""
        if exchange.kept_broke:
            note(exchange.visit.key, self._broke)
        elif exchange.detail.startswith(_NO_LENGTH):
            note(exchange.visit.key, self._lengthless)  # browsers pass over it; libcurl must be told before
            exchange.outcome = Outcome.BROKEN_OFF
        if self._access.proxy and PROXY_REFUSED in (
            curl.getinfo(pycurl.HTTP_CONNECTCODE),
            curl.getinfo(pycurl.RESPONSE_CODE),
        ):
            exchange.outcome, exchange.detail = Outcome.CONNECT_FAILED, "the proxy asks for a user name and password"
        head = final_head(lines)
        if exchange.visit.key in self._in_http_1:
            self._in_http_1.discard(exchange.visit.key)
            if not head and exchange.outcome in (Outcome.TLS_FAILED, Outcome.BAD_ANSWER):
                exchange.outcome = Outcome.BROKEN_OFF  # the next try is in HTTP/2 again
        if self._old_ports or head.startswith(b"HTTP/1.0"):
            self._note_version(exchange, head, curl)
        protocol = _PROTOCOLS.get(head[:8]) or _PROTOCOLS.get(head[:7])
        if protocol is None:  # libcurl takes "http/" too, and calls its status 200
            if exchange.outcome.answered:
                exchange.outcome = Outcome.BAD_ANSWER
                exchange.detail = "the answer has no complete head: its status line or its end is missing"
            return
        exchange.head = head
        exchange.effective_protocol = protocol
        exchange.status = curl.getinfo(pycurl.RESPONSE_CODE)
        _judge(exchange)
        self._note_refusal(exchange, curl)

    def _note_refusal(self, exchange: Exchange, curl: Any) -> None:
        """Have the URL asked for once more: without a condition that was refused, or not on a kept connection."""
        if refuses_condition(exchange):
            note(exchange.visit.key, self._unconditional)
        of_connection = OF_CONNECTION.get(exchange.status)
        if of_connection and exchange.outcome is Outcome.CLIENT_ERROR and not curl.getinfo(pycurl.NUM_CONNECTS):
            note(exchange.visit.key, self._misdirected)
            exchange.outcome, exchange.kept_broke = Outcome.BROKEN_OFF, True
            exchange.detail = f"status {exchange.status}: {of_connection}"

    def _note_version(self, exchange: Exchange, head: bytes, curl: Any) -> None:
        """Keep the recorded request true: on a connection that last answered in HTTP/1.0, libcurl asks in it."""
        port = curl.getinfo(pycurl.LOCAL_PORT)
        if port in self._old_ports and not curl.getinfo(pycurl.NUM_CONNECTS):
            exchange.request = exchange.request.replace(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", 1)
        if head.startswith(b"HTTP/1.0"):
            self._old_ports.add(port)
        else:
            self._old_ports.discard(port)


def condition_of(visit: Visit) -> str:
    """Return the header field that asks for a page only if it differs from our copy; empty if none can.

    An ETag decides alone (RFC 9110, 13.2.2). A server's value is sent back as it is, unless it is no plain text of one
    line, or begins with an asterisk, which stands for any page. Apache adds the coding to the tag of what it packs, and
    compares the tag without ("DeflateAlterETag" in its manual), so both are sent.
    """
    earlier = visit.earlier
    if earlier is None or earlier.original is None:
        return ""
    for field, name in (("If-None-Match", "etag"), ("If-Modified-Since", "last-modified")):
        value = next(iter(headers_of(earlier.head, name)), "")
        if _VALIDATOR.fullmatch(value):
            coded = _CODED_TAG.fullmatch(value) if name == "etag" else None
            return f'{field}: {value}, {coded[1]}"' if coded else f"{field}: {value}"
    return ""


def _had_condition(exchange: Exchange) -> bool:
    """Return whether the request had the condition that our copy allows."""
    condition = condition_of(exchange.visit)
    return bool(condition) and f"\r\n{condition}\r\n".encode() in exchange.request


def refuses_condition(exchange: Exchange) -> bool:
    """Return whether the answer is about our condition, and not about the page."""
    return exchange.status == PRECONDITION_FAILED and _had_condition(exchange)


class SitesHttp:
    """The protocol module for `http` and `https` if some `sites` are asked in their own way."""

    schemes = Http.schemes

    def __init__(self, curl: CurlClient, agent: AgentSection, sites: Sites) -> None:
        self._curl = curl
        self._agent = agent
        self._sites = sites
        self._ways: dict[Access, Http] = {}  # bounded by tables and paths of cookies

    def fetch(self, visit: Visit, address: str, done: Done) -> None:
        """Start fetching as `Http.fetch` does, in the way of the site."""
        access = self._sites.access(visit.url)
        way = self._ways.get(access)
        if way is None:
            way = self._ways[access] = Http(self._curl, self._agent, access)
        way.fetch(visit, address, done)


def _essence(fields: Sequence[str]) -> str:
    """Return the media type alone, in small letters; for no field the type of unknown bytes."""
    return fields[0].partition(";")[0].strip().lower() if fields else "application/octet-stream"


def final_head(lines: Sequence[bytes]) -> bytes:
    """Return the status line and fields of the last answer in `lines`, with its blank line; nothing if that is missing.

    libcurl also takes a line that only begins like a blank one for the end, which nobody could find again in an
    archive.
    """
    head = b"".join(lines)
    if head[9:10] != b"1" and head.find(b"\r\n\r\n") + 4 == len(head):  # nearly always
        return head
    start = 0
    blank = _BLANK.search(head)
    while _INTERIM.match(head, start) and blank is not None:
        start = blank.end()
        blank = _BLANK.search(head, start)
    return head[start : blank.end()] if blank else b""


def _judge(exchange: Exchange) -> None:
    """Set the outcome of an answer with a whole head, after its body has ended."""
    code = exchange.status
    by_head = outcome_of(code, exchange)
    if exchange.outcome in _WAITED and _ends_with_connection(exchange):
        exchange.detail += "; the answer gives no length, and the server kept the connection open"
    if exchange.outcome is Outcome.OK and not 200 <= code < 300:
        asked = code == 304 and _had_condition(exchange)
        exchange.outcome = Outcome.UNCHANGED if asked else by_head
        if exchange.outcome is Outcome.BAD_ANSWER:
            why = "is never followed" if code in _NEVER_FOLLOWED else "is not an answer to this request"
            exchange.detail = f"status {code} {why}"
    elif by_head in BY_HEAD and exchange.outcome is not Outcome.CONNECT_FAILED:  # that is a proxy's answer
        exchange.outcome = by_head
    elif code == 206 and exchange.outcome.answered and (part := _part_of(exchange)):
        exchange.outcome, exchange.detail = Outcome.BAD_ANSWER, f"a part that was not requested: {part[:80]}"


def outcome_of(code: int, exchange: Exchange) -> Outcome:
    """Return the outcome of an answer whose status is not 2xx."""
    if code in (429, 503):
        return Outcome.THROTTLED
    if code >= 500:
        return Outcome.SERVER_ERROR
    if code >= 400:
        return Outcome.CLIENT_ERROR
    if code >= 300 and code != 304 and code not in _NEVER_FOLLOWED:
        return Outcome.REDIRECTED if exchange.header("location") else Outcome.OK
    return Outcome.BAD_ANSWER


def last_outcome(exchange: Exchange) -> Outcome:
    """Return the outcome of a page that is not asked for again. If its body did not come whole, and some of it came,
    the head decides: an error is one; of another page we have the beginning. An answer that would not be taken if it
    were whole is not taken. Protocols without heads say no to a page before its body."""
    if exchange.outcome.answered or exchange.truncated not in ("disconnect", "time"):
        return exchange.outcome
    if not exchange.head:
        return Outcome.INCOMPLETE if exchange.effective_protocol else exchange.outcome
    if 200 <= exchange.status < 300:
        by_head = Outcome.BAD_ANSWER if exchange.status == 206 and _part_of(exchange) else Outcome.OK
    else:
        by_head = outcome_of(exchange.status, exchange)
    return {Outcome.OK: Outcome.INCOMPLETE, Outcome.BAD_ANSWER: exchange.outcome}.get(by_head, by_head)


def _ends_with_connection(exchange: Exchange) -> bool:
    """Return whether only the end of the connection ends the body (RFC 9112, 6.3)."""
    if not exchange.head.startswith(b"HTTP/1"):
        return False
    fields = exchange.headers("transfer-encoding")
    if is_uncoded(fields):
        return not exchange.headers("content-length")
    return fields[-1].lower().rpartition(",")[2].strip() != "chunked"


def _part_of(exchange: Exchange) -> str:
    """Return which part a 206 says that it has; empty if it has all, or does not say."""
    if _essence(exchange.headers("content-type")) == "multipart/byteranges":
        return "several in one body"
    said = exchange.header("content-range")
    found = _RANGE.fullmatch(said)
    return "" if found and int(found[1]) + 1 == int(found[2]) else said


def _ending(lines: Sequence[bytes]) -> BodyEnd | None:
    """Return what finds the end of the body, if libcurl does not."""
    coded = any(line[:18].lower() == b"transfer-encoding:" for line in lines)
    return overlooked_end(final_head(lines)) if coded else None
