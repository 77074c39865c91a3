"""How a visit can end: the closed list.

An outcome is a value that travels with the exchange, into the tables and into `fyke why`. `fyke.fetcher.faults` has a
table of the costs of each (wait, retries, the host's good name).
"""

from enum import StrEnum


class Outcome(StrEnum):
    """The end of one visit. Its value is the word people read in tables and messages."""

    OK = "ok"  # an answer with a body meant for us: 2xx or its like in ftp and gopher; 3xx that leads nowhere
    UNCHANGED = "unchanged"  # as at the visit before: a 304 that was asked for, or the same content again
    GONE = "gone"  # 404 or 410 for the second visit in a row
    REDIRECTED = "redirected"  # 3xx with a Location: the target is a link of its own
    REDIRECTED_TOO_OFTEN = "redirected_too_often"  # 3xx at the end of a long chain of redirects
    CLIENT_ERROR = "client_error"  # 4xx except 429
    SERVER_ERROR = "server_error"  # 5xx except 503
    THROTTLED = "throttled"  # 429 or 503: the server asks for patience

    NO_SUCH_NAME = "no_such_name"  # the DNS says the name does not exist
    DNS_FAILED = "dns_failed"  # the DNS gave no usable answer
    ADDRESS_REFUSED = "address_refused"  # a private, loopback or link-local address that no seed named
    CONNECT_FAILED = "connect_failed"  # refused, unreachable, or no answer to the connect
    TLS_FAILED = "tls_failed"  # handshake or certificate
    TIMED_OUT = "timed_out"  # a stage took longer than its limit
    STALLED = "stalled"  # bytes came slower than the minimum rate
    BROKEN_OFF = "broken_off"  # the connection ended before the answer did
    BAD_ANSWER = "bad_answer"  # bytes that do not follow the protocol
    TOO_LARGE = "too_large"  # more bytes than the limit; the beginning is archived as truncated

    ROBOTS_FORBADE = "robots_forbade"  # a line of robots.txt forbids it
    ROBOTS_UNREACHABLE = "robots_unreachable"  # robots.txt could not be had, so nothing may be fetched
    HOST_RETIRED = "host_retired"  # the host failed too often
    UNSUPPORTED = "unsupported"  # no protocol module for the scheme
    PLUGIN_FAILED = "plugin_failed"  # a plug-in raised: only this page is lost to it
    MEDIA_REFUSED = "media_refused"  # longer than `media_bytes` of a [[site]] table allows; only archived
    INCOMPLETE = "incomplete"  # no try brought the whole body; the newest beginning is archived as truncated

    @property
    def answered(self) -> bool:
        """Whether a server's answer arrived whole enough to be archived."""
        return self in _ANSWERED


_ANSWERED = frozenset(
    {
        Outcome.OK,
        Outcome.UNCHANGED,
        Outcome.GONE,
        Outcome.REDIRECTED,
        Outcome.REDIRECTED_TOO_OFTEN,
        Outcome.CLIENT_ERROR,
        Outcome.SERVER_ERROR,
        Outcome.THROTTLED,
        Outcome.TOO_LARGE,
        Outcome.MEDIA_REFUSED,
        Outcome.INCOMPLETE,
    }
)
