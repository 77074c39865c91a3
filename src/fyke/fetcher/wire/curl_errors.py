"""libcurl's error codes as outcomes: the one place where its words are known.

`CurlClient` asks once for each failed transfer. libcurl uses some codes for several faults (a timeout has many stages,
a receive error may be a reset or nonsense), so the message decides there. A test meets each case with a real server,
because messages may change between releases.
"""

from typing import NamedTuple

import pycurl

from fyke.core.outcomes import Outcome

_HTTP2_STREAM = 92  # CURLE_HTTP2_STREAM, which pycurl does not name

_BY_CODE = {
    pycurl.E_URL_MALFORMAT: Outcome.UNSUPPORTED,
    pycurl.E_COULDNT_RESOLVE_HOST: Outcome.CONNECT_FAILED,
    pycurl.E_COULDNT_CONNECT: Outcome.CONNECT_FAILED,
    pycurl.E_SSL_CONNECT_ERROR: Outcome.TLS_FAILED,
    pycurl.E_PEER_FAILED_VERIFICATION: Outcome.TLS_FAILED,
    pycurl.E_SSL_CERTPROBLEM: Outcome.TLS_FAILED,
    pycurl.E_SSL_CIPHER: Outcome.TLS_FAILED,
    pycurl.E_SSL_CACERT_BADFILE: Outcome.TLS_FAILED,
    pycurl.E_SSL_ISSUER_ERROR: Outcome.TLS_FAILED,
    pycurl.E_SSL_INVALIDCERTSTATUS: Outcome.TLS_FAILED,
    pycurl.E_PARTIAL_FILE: Outcome.BROKEN_OFF,
    pycurl.E_GOT_NOTHING: Outcome.BROKEN_OFF,
    pycurl.E_SEND_ERROR: Outcome.BROKEN_OFF,
    _HTTP2_STREAM: Outcome.BROKEN_OFF,
}

# libcurl's words with E_RECV_ERROR if the connection, and not the answer, is at fault.
_CONNECTION_WORDS = ("reset", "recv failure", "ssl_read", "closed abruptly", "connection died", "unexpected eof")

# Errors for which libcurl has no message.
_SILENT = {16: "it does not speak the HTTP/2 that it agreed to", 100: "a header line is too long"}

_TRUNCATED = {
    Outcome.TOO_LARGE: "length",
    Outcome.MEDIA_REFUSED: "unspecified",  # an archive knows it by that
    Outcome.TIMED_OUT: "time",
    Outcome.STALLED: "time",
    Outcome.BROKEN_OFF: "disconnect",
    Outcome.BAD_ANSWER: "disconnect",
}


class TransferEnd(NamedTuple):
    """How a transfer ended: its outcome, and a line for people (empty when all went well)."""

    outcome: Outcome
    detail: str

    def truncated(self, size_bytes: int) -> str:
        """Return WARC's word for why a body of which `size_bytes` came is not complete."""
        whole = not size_bytes and self.outcome is not Outcome.MEDIA_REFUSED
        return "" if whole else _TRUNCATED.get(self.outcome, "")


def transfer_end(code: int, message: str, *, connected: bool) -> TransferEnd:
    """Return the meaning of libcurl's error `code` with `message`; `connected` once the server took the connection."""
    detail = message or _SILENT.get(code, f"libcurl error {code}")
    if code == pycurl.E_OPERATION_TIMEDOUT:
        return TransferEnd(_timeout(message, connected), detail)
    if code == pycurl.E_RECV_ERROR:
        said = message.lower()
        broken = any(words in said for words in _CONNECTION_WORDS)
        return TransferEnd(Outcome.BROKEN_OFF if broken else Outcome.BAD_ANSWER, detail)
    if code == pycurl.E_UNSUPPORTED_PROTOCOL and not connected:
        return TransferEnd(Outcome.UNSUPPORTED, detail)
    return TransferEnd(_BY_CODE.get(code, Outcome.BAD_ANSWER), detail)


def _timeout(message: str, connected: bool) -> Outcome:
    if "too slow" in message:
        return Outcome.STALLED
    return Outcome.TIMED_OUT if connected else Outcome.CONNECT_FAILED
