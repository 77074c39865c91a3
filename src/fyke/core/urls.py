"""URLs: their canonical form, key, host and pay-level domain.

Every room uses these words.

- The *canonical form* is WHATWG parsing (`ada_url`), then: no fragment, no credentials, no default port,
  percent-encoding normalised (RFC 3986, section 6.2.2: hexadecimal in capitals, unreserved characters decoded), an
  empty path written `/`. None of this changes which page is meant. A URL of any scheme has a canonical form, if a host
  follows the scheme. The crawl says which schemes are fetched, because plug-ins add some
  (`fyke.core.plugins.schemes_of`).
- The *key* of a canonical URL, a host name or a pay-level domain is the BLAKE2b of its bytes, 64 bits of it. Tables on
  disk are sorted by key. A hash that is not of cryptography would be ten times as fast, but a stranger could make a URL
  with the key of somebody's page, which would then count as seen.

Invariant: `canonical(canonical(x)) == canonical(x)`, and neither raises, whatever the text.
"""

import re
from collections.abc import Iterable
from functools import lru_cache, partial
from hashlib import blake2b
from typing import NamedTuple

import ada_url
from publicsuffixlist import PublicSuffixList

DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21, "gopher": 70}
SCHEMES = frozenset(DEFAULT_PORTS)  # those that Fyke fetches without a plug-in
MAX_URL_BYTES = 2048  # as in sitemaps: a longer URL is seldom a page, and the crawl holds thousands of URLs
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
# Output of the WHATWG serialiser that is canonical already: no credentials, escapes, fragment or empty query.
_TIDY = re.compile(r"(?:https?|ftp)://[^/?#@%]{1,200}/[^?#%]*(?:\?[^#%]+)?")
_SERIALISED = re.compile(
    r"([a-z][a-z0-9+.-]*)://(?:[^/?#@]*@)?(\[[^\]]*\]|[^:/?#]+)(?::(\d+))?([^?#]*)(\?[^#]+)?\??(?:#.*)?", re.DOTALL
)
# The place of a host in a link as it is written: behind two slashes, or behind a scheme.
_AUTHORITY = re.compile(
    r"[\0-\x20]*+(?:[A-Za-z][A-Za-z0-9+.\-\t\r\n]*+:[\\/\t\r\n]*+|[\\/\t\r\n]{2,}+)(?:[^\\/?#]*@)?([^\\/?#]*+)"
)
_NO_UTF8 = re.compile("[\udc80-\udcff]")  # how Python marks such bytes (PEP 383)
_SPECIAL = frozenset({"http", "https", "ftp", "ws", "wss", "file"})  # to WHATWG: the hosts of others are opaque
_hash = partial(blake2b, digest_size=8)


class UrlParts(NamedTuple):
    """A canonical URL taken apart.

    `host` has no dots at its end: with them it is the same name to the DNS, so one host with one rest. `port` is the
    effective port (0 if none is written and no default is known for the scheme). `target` is path and query.
    """

    scheme: str
    host: str
    port: int
    target: str

    @property
    def origin(self) -> str:
        """Scheme, host and port, if any, as one word: the scope of one robots.txt (RFC 9309, 2.3)."""
        if not self.port and self.scheme not in DEFAULT_PORTS:
            return f"{self.scheme}://{self.host}"
        return f"{self.scheme}://{self.host}:{self.port}"


class Locator(NamedTuple):
    """A canonical URL with the keys of the URL, its host and its pay-level domain."""

    url: bytes
    key: int
    host: int
    domain: int


def key_of(data: bytes | str) -> int:
    """Return the BLAKE2b (RFC 7693) of `data` (text as UTF-8), 8 bytes long, little-endian: an unsigned 64-bit
    integer."""
    return int.from_bytes(_hash(data.encode() if isinstance(data, str) else data).digest(), "little")


def keys_of(data: Iterable[bytes]) -> bytearray:
    """Return the keys of all of `data`, one behind the other: 8 bytes each, little-endian."""
    return bytearray().join([_hash(one).digest() for one in data])


def canonical(url: str, base: str | None = None) -> str | None:
    """Return the canonical form of `url`, resolved against `base` if given. Never raises.

    Returns None for a text that is not a URL, a URL without a host, a URL longer than `MAX_URL_BYTES` and a host longer
    than `MAX_HOST_BYTES`. These are not links to pages.
    """
    if len(url) > MAX_HOST_BYTES and (len(url) > MAX_HREF_CHARS or _names_too_long_a_host(url)):
        return None
    try:
        href: str = ada_url.join_url(base, url) if base is not None else ada_url.URL(url).href
    except (ValueError, UnicodeError):
        return None
    tidy = href if _TIDY.fullmatch(href) else _tidied(href)
    return tidy if tidy is not None and len(tidy) <= MAX_URL_BYTES else None


def text_of(written: bytes) -> str:
    """Return a URL, or the line of a list with one, as text. Bytes that are no UTF-8 become escapes (`%E9`), so that
    they are sent as they are; a host with one is none."""
    return _NO_UTF8.sub(lambda match: f"%{ord(match[0]) & 0xFF:02X}", written.decode("utf-8", "surrogateescape"))


def _names_too_long_a_host(url: str) -> bool:
    """Return whether `url` has a host that is too long to be a name. Parsing a host takes the square of its length."""
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
    """Return whether `url`, which has a canonical form, has a user name or a password before its host."""
    try:
        parts = ada_url.URL(url)
    except ValueError:  # a host alone
        return False
    return bool(parts.username or parts.password)


def _named_host(opaque: str) -> str | None:
    """Return an `opaque` host as an http URL has it. WHATWG leaves hosts of schemes that it does not know as they are,
    but the DNS takes them for names."""
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
    """Return the parts of a canonical URL. Raises ValueError for other text."""
    match = _SPLIT.fullmatch(url)
    if match is None:
        raise ValueError(f"not a canonical URL: {url!r}")
    scheme, host, port, target = match.groups()
    name = host.rstrip(".") or host
    return UrlParts(scheme, name, int(port) if port else DEFAULT_PORTS.get(scheme, 0), target)


def has_default_port(parts: UrlParts) -> bool:
    """Return whether the port is the default of its scheme."""
    return parts.port == DEFAULT_PORTS.get(parts.scheme, 0)


def main_name(host: str) -> str:
    """Return the name of the site of `host`: without `www.`, `m.` or `mobile.` before it."""
    for prefix in SITE_PREFIXES:
        if host.startswith(prefix) and "." in host[len(prefix) :]:
            return host[len(prefix) :]
    return host


def robots_url(origin: str) -> str:
    """Return the canonical URL of the robots.txt for `origin` (`UrlParts.origin`, in which a default port is written).

    Raises ValueError if `origin` is not an origin.
    """
    scheme, _, authority = origin.partition("://")
    if not authority:
        raise ValueError(f"not an origin: {origin!r}")
    place = "0/robots.txt" if scheme == "gopher" else "robots.txt"  # gopher: the type, then the selector
    return f"{scheme}://{authority.removesuffix(f':{DEFAULT_PORTS.get(scheme)}')}/{place}"


def is_address(host: str) -> bool:
    """Return whether `host` is a literal IP address."""
    return host.startswith("[") or _IPV4.fullmatch(host) is not None


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


@lru_cache(maxsize=HOSTS_REMEMBERED)
def pay_level_domain(host: str) -> str:
    """Return the registrable domain of `host` by the Public Suffix List shipped with the package.

    A literal address or a public suffix is its own domain.
    """
    if is_address(host):
        return host
    return _suffixes().privatesuffix(host.rstrip(".")) or host


@lru_cache(maxsize=HOSTS_REMEMBERED)
def host_keys(host: str) -> tuple[int, int]:
    """Return the keys of `host` and of its pay-level domain."""
    return key_of(host), key_of(pay_level_domain(host))


@lru_cache(maxsize=HOSTS_REMEMBERED)
def _authority_keys(authority: str) -> tuple[int, int]:
    return host_keys(split(f"http://{authority}/").host)


def locate(url: str) -> Locator:
    """Return the locator of a canonical URL. Raises ValueError for other text."""
    _, _, authority, _ = url.split("/", 3)
    text = url.encode()
    host, domain = _authority_keys(authority)
    return Locator(text, key_of(text), host, domain)
