"""The sort key of archive indexes: a URL with its host reversed, so that a site's pages lie together.

`fyke.archive.cdxj` calls it once a record; pywb and the Wayback machine look pages up by it. It follows the default of
the Internet Archive's `surt` package 0.3.1: Google's canonicalisation, then the Archive's (no scheme, no `www`, path
and query in small letters, session identifiers out, query sorted). We do not depend on that package: its last release
is of 2018, it brings a second public suffix list, and it asks the DNS for odd numeric hosts. Tests compare our answers
with recorded ones of that package.

Differs: input is a canonical URL (`fyke.core.urls`), so dot segments, ports and hosts are in order.
"""

import re
from functools import lru_cache
from urllib.parse import quote_from_bytes, unquote_to_bytes

_PLAIN = re.compile(r"https?://([a-z0-9.-]+)(:\d+)?(/[A-Za-z0-9._~!$&'*+,;=:@/-]*)")
_ODD = re.compile(r"//|/\.")
_PARTS = re.compile(r"([a-z][a-z0-9+.-]*)://(\[[^\]]*\]|[^:/?#]*)(:\d+)?([^?]*)(?:\?(.*))?", re.DOTALL)
_WWW = re.compile(r"www\d*\.")
_SAFE = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_PATH_SESSIONS = (
    re.compile(rb"(.*/)\((?:[a-z]\([0-9a-z]{24}\))++\)/", re.DOTALL),
    re.compile(rb"(.*/)\([0-9a-z]{24}\)/", re.DOTALL),
)
_QUERY_SESSIONS = (
    re.compile(rb"(.*)jsessionid=[0-9a-zA-Z]{32}(?:&(.*))?\Z", re.IGNORECASE | re.DOTALL),
    re.compile(rb"(.*)phpsessid=[0-9a-zA-Z]{32}(?:&(.*))?\Z", re.IGNORECASE | re.DOTALL),
    re.compile(rb"(.*)sid=[0-9a-zA-Z]{32}(?:&(.*))?\Z", re.IGNORECASE | re.DOTALL),
    re.compile(rb"(.*)ASPSESSIONID[a-zA-Z]{8}=[a-zA-Z]{24}(?:&(.*))?\Z", re.IGNORECASE | re.DOTALL),
)


def surt(url: str) -> str:
    """Return the key of the canonical `url`: `com,example)/a?b` for `http://www.Example.com/A?b`."""
    plain = _PLAIN.fullmatch(url)
    if plain is not None and not _ODD.search(plain[3]):
        host, port, path = plain.groups("")
        path = path.lower()
        return f"{_reversed(host)}{port}){path[:-1] if len(path) > 1 and path[-1] == '/' else path}"
    match = _PARTS.fullmatch(url)
    if match is None:
        return url
    _, host, port, target, query = match.groups()
    key = f"{_reversed(host)}{port or ''}){_path(target)}"
    return f"{key}?{_query(query)}" if query and _query(query) else key


@lru_cache(maxsize=1 << 12)
def _reversed(host: str) -> str:
    host = host.strip("[]").replace("..", ".").strip(".")
    return ",".join(reversed(_WWW.sub("", host, count=1).split(".") if _WWW.match(host) else host.split(".")))


def _path(target: str) -> str:
    steps = [step for step in _unescaped(target).split(b"/")[1:] if step != b"."]
    kept: list[bytes] = []
    for step in steps:
        if step == b".." and kept:
            kept.pop()
        else:
            kept.append(step)
    joined = b"/" + b"".join(step + b"/" for step in kept[:-1] if step) + (kept[-1] if kept else b"")
    path = _escaped(joined).lower().encode()
    for session in _PATH_SESSIONS:
        path = _without_session(path, session)
    return (path[:-1] if path.endswith(b"/") and len(path) > 1 else path).decode()


def _query(query: str) -> str:
    text = _escaped(_unescaped(query)).encode()
    for session in _QUERY_SESSIONS:
        if found := session.match(text):
            text = found[1] + (found[2] or b"")
    text = _without_tokens(text).lower()
    if len(text) > 1:
        text = b"&".join(b"=".join(pair) for pair in sorted(tuple(p.split(b"=", 1)) for p in text.split(b"&")))
    return text.decode()


def _without_session(path: bytes, session: re.Pattern[bytes]) -> bytes:
    """Return `path` without the last `session` before an .aspx, with a byte or more, and no question mark, between."""
    steps = path.split(b"?")
    for at in range(len(steps) - 1, -1, -1):
        if found := session.match(steps[at], 0, max(0, steps[at].rfind(b".aspx") - 1)):
            steps[at] = found[1] + steps[at][found.end() :]
            return b"?".join(steps)
    return path


def _without_tokens(query: bytes) -> bytes:
    """Return `query` without the last `cfid=…&cftoken=…`, whatever stands before it in its pair."""
    pairs = query.split(b"&")
    for at in range(len(pairs) - 2, -1, -1):
        begin = pairs[at].lower().rfind(b"cfid=", 0, -1)
        if begin >= 0 and pairs[at + 1].lower().startswith(b"cftoken=") and len(pairs[at + 1]) > len(b"cftoken="):
            return b"&".join([*pairs[:at], pairs[at][:begin]]) + b"&".join(pairs[at + 2 :])
    return query


def _unescaped(text: str) -> bytes:
    """Percent-decode until nothing changes, as Google's canonicalisation asks."""
    data = text.encode()
    while (once := unquote_to_bytes(data)) != data:
        data = once
    return data


def _escaped(data: bytes) -> str:
    return quote_from_bytes(data, safe=_SAFE)
