"""What a URL is here: its one canonical form, its key, its host, its pay-level domain.

Every room uses these words. The canonical form is WHATWG parsing (`ada_url`), then: no fragment, no
credentials, no default port, percent-encoding normalised (RFC 3986, section 6.2.2: hexadecimal in
capitals, unreserved characters decoded), an empty path written `/`. Nothing here can change which
page is meant. Any scheme has one, if a host follows it: which are fetched is for the crawl to say, since plug-ins
bring more (`fyke.core.plugins.schemes_of`). The *key* of anything is the xxh3-64 of its bytes: of the canonical URL,
of the host name, of the pay-level domain; keys are what the tables on disk are sorted by.

Invariant: `canonical(canonical(x)) == canonical(x)`, and neither raises, whatever the text.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import ada_url
import xxhash
from publicsuffixlist import PublicSuffixList

DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21, "gopher": 70}
SCHEMES = frozenset(DEFAULT_PORTS)  # those that Fyke fetches without a plug-in
MAX_URL_BYTES = 2048  # as in sitemaps: what is longer is seldom a page, and all the crawl has URLs by the thousand
MAX_HREF_CHARS = 8 * MAX_URL_BYTES  # as written: fragments go, escapes shrink
MAX_HOST_BYTES = 255  # no name in the DNS is longer
SITE_PREFIXES = ("www.", "m.", "mobile.")
HOSTS_REMEMBERED = 1 << 14  # some 350 bytes each, in each of three caches

UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# Escapes that are not in their normal form: of unreserved characters, or with small letters.
_ESCAPE = re.compile(r"%(2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|5[0-9AaFf]|7[0-9AaEe]|[0-9A-Fa-f][a-f]|[a-f][0-9A-F])")
_STRAY = re.compile(r"%[0-9A-Fa-f]?\Z")
_SPLIT = re.compile(r"([a-z][a-z0-9+.-]*)://(\[[^\]]*\]|[^:/?#]*)(?::(\d+))?(.*)", re.DOTALL)
_IPV4 = re.compile(r"\d{1,3}(\.\d{1,3}){3}")
# What the WHATWG serialiser writes that needs nothing more done: no credentials, escapes, fragment or empty query.
_TIDY = re.compile(r"(?:https?|ftp)://[^/?#@%]{1,200}/[^?#%]*(?:\?[^#%]+)?")
_SERIALISED = re.compile(
    r"([a-z][a-z0-9+.-]*)://(?:[^/?#@]*@)?(\[[^\]]*\]|[^:/?#]+)(?::(\d+))?([^?#]*)(\?[^#]+)?\??(?:#.*)?", re.DOTALL
)
# Where a host may stand in a link as it is written: behind two slashes, or a scheme.
_AUTHORITY = re.compile(
    r"[\0-\x20]*+(?:[A-Za-z][A-Za-z0-9+.\-\t\r\n]*+:[\\/\t\r\n]*+|[\\/\t\r\n]{2,}+)(?:[^\\/?#]*@)?([^\\/?#]*+)"
)
_SPECIAL = frozenset({"http", "https", "ftp", "ws", "wss", "file"})  # to WHATWG: the hosts of others are opaque


class UrlParts(NamedTuple):
    """A canonical URL taken apart; `host` has no dots behind it, for to the DNS that is the same name: it is one host,
    with one rest. `port` is the effective one (0 where the scheme has no default that we know), `target` is path and
    query."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def origin(self) -> str:
        """Scheme, host and port, if any, as one word: what one robots.txt speaks for (RFC 9309, 2.3)."""
        if not self.port and self.scheme not in DEFAULT_PORTS:
            return f"{self.scheme}://{self.host}"
        return f"{self.scheme}://{self.host}:{self.port}"


class Locator(NamedTuple):
    """A canonical URL with the three keys by which it is remembered, ordered and kept polite."""

    url: bytes
    key: int
    host: int
    domain: int


def key_of(data: bytes | str) -> int:
    """The xxh3-64 of `data` (text as UTF-8): an unsigned 64-bit integer."""
    return xxhash.xxh3_64_intdigest(data.encode() if isinstance(data, str) else data)


def canonical(url: str, base: str | None = None) -> str | None:
    """The canonical form of `url`, resolved against `base` if given.

    None when it is no URL, has no host, or is longer than `MAX_URL_BYTES`, or its host than `MAX_HOST_BYTES`: such
    links are not links to pages. Never raises.
    """
    if len(url) > MAX_HOST_BYTES and (len(url) > MAX_HREF_CHARS or _names_too_long_a_host(url)):
        return None
    try:
        href: str = ada_url.join_url(base, url) if base is not None else ada_url.URL(url).href
    except (ValueError, UnicodeError):
        return None
    tidy = href if _TIDY.fullmatch(href) else _tidied(href)
    return tidy if tidy is not None and len(tidy) <= MAX_URL_BYTES else None


def _names_too_long_a_host(url: str) -> bool:
    """Whether `url` has a host that is longer than any when it is read: that takes the square of its length."""
    match = _AUTHORITY.match(url)
    return match is not None and len(match[1]) > MAX_HOST_BYTES * (9 if match[1].isascii() else 1)


def _tidied(href: str) -> str | None:
    match = _SERIALISED.fullmatch(href)
    if match is None:
        return None
    scheme, host, port, path, query = match.groups()
    if scheme not in _SPECIAL:
        host = _named_host(host) or ""
    if not 0 < len(host) <= MAX_HOST_BYTES:
        return None
    authority = f"{host}:{port}" if port and int(port) != DEFAULT_PORTS.get(scheme) else host
    target = f"{path or '/'}{query or ''}"
    return f"{scheme}://{authority}{_ESCAPE.sub(_normalise_escape, target) if '%' in target else target}"


def has_credentials(url: str) -> bool:
    """Whether `url`, which has a canonical form, has a user's name or a password before its host."""
    try:
        parts = ada_url.URL(url)
    except ValueError:  # a host alone
        return False
    return bool(parts.username or parts.password)


def _named_host(opaque: str) -> str | None:
    """The host of a URL that WHATWG does not know as an http URL would have it: there opaque, to the DNS a name."""
    try:
        return str(ada_url.URL(f"http://{opaque}/").hostname) or None
    except ValueError:
        return None


def _normalise_escape(match: re.Match[str]) -> str:
    byte = int(match[1], 16)
    # After a stray per cent sign a decoded character could complete an escape that was never written.
    if byte in UNRESERVED and not _STRAY.search(match.string, max(0, match.start() - 2), match.start()):
        return chr(byte)
    return f"%{match[1].upper()}"


def split(url: str) -> UrlParts:
    """The parts of a canonical URL. Raises ValueError for text that is not one."""
    match = _SPLIT.fullmatch(url)
    if match is None:
        raise ValueError(f"not a canonical URL: {url!r}")
    scheme, host, port, target = match.groups()
    name = host.rstrip(".") or host
    return UrlParts(scheme, name, int(port) if port else DEFAULT_PORTS.get(scheme, 0), target)


def has_own_port(parts: UrlParts) -> bool:
    """Whether the port is the one that its scheme has where none is named."""
    return parts.port == DEFAULT_PORTS.get(parts.scheme, 0)


def main_name(host: str) -> str:
    """The name of the site of `host`: without `www.`, `m.` or `mobile.` before it."""
    for prefix in SITE_PREFIXES:
        if host.startswith(prefix) and "." in host[len(prefix) :]:
            return host[len(prefix) :]
    return host


def robots_url(origin: str) -> str:
    """The canonical URL of the robots.txt that speaks for `origin` (`UrlParts.origin`, which has a default port too).

    Raises ValueError for what is no origin.
    """
    scheme, _, authority = origin.partition("://")
    if not authority:
        raise ValueError(f"not an origin: {origin!r}")
    place = "0/robots.txt" if scheme == "gopher" else "robots.txt"  # gopher: the type, then the selector
    return f"{scheme}://{authority.removesuffix(f':{DEFAULT_PORTS.get(scheme)}')}/{place}"


def is_address(host: str) -> bool:
    """Whether `host` is a literal IP address rather than a name."""
    return host.startswith("[") or _IPV4.fullmatch(host) is not None


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


@lru_cache(maxsize=HOSTS_REMEMBERED)
def pay_level_domain(host: str) -> str:
    """The registrable domain of `host` by the Public Suffix List shipped with the package.

    A literal address, and a name that is itself a public suffix, is its own domain.
    """
    if is_address(host):
        return host
    return _suffixes().privatesuffix(host.rstrip(".")) or host


@lru_cache(maxsize=HOSTS_REMEMBERED)
def host_keys(host: str) -> tuple[int, int]:
    """The keys of `host` and of its pay-level domain."""
    return key_of(host), key_of(pay_level_domain(host))


@lru_cache(maxsize=HOSTS_REMEMBERED)
def _authority_keys(authority: str) -> tuple[int, int]:
    return host_keys(split(f"http://{authority}/").host)


def locate(url: str) -> Locator:
    """The locator of a canonical URL. Raises ValueError for text that is not one."""
    _, _, authority, _ = url.split("/", 3)
    text = url.encode()
    host, domain = _authority_keys(authority)
    return Locator(text, key_of(text), host, domain)
