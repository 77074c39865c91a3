"""How each site is asked: header fields, cookies, logins, client certificates, proxies, delays.

The agent makes this from the `[[site]]` tables of the settings. The HTTP module asks for each URL, the resolver and the
workbench for each host. Secrets are read here, from the environment or a file, when a crawl begins, and are in this
process's memory alone.

Invariant: a table's secrets are in the `Access` of URLs of the origin it names, and of no others. A redirect is a visit
of its own, so it changes nothing of that. Records of a request have `HIDDEN` for secrets.
"""

import os
import re
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fyke.core.errors import ConfigurationError
from fyke.core.site import SECRET_PLACES, SiteSection
from fyke.core.text_files import text_of
from fyke.core.urls import canonical, split
from fyke.fetcher.addresses import literal
from fyke.fetcher.client_keys import why_unusable

HIDDEN = "(hidden)"
MOST_CHARACTERS = 8 << 20  # of a file of secrets
_EXPIRES = re.compile(r"-?[0-9]{1,18}")
_ENVIRONMENT = ("http_proxy", "https_proxy", "all_proxy")


@dataclass(frozen=True, slots=True)
class Access:
    """The way in which URLs of one site are asked. Equal ones share connections."""

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # name and value
    hidden: frozenset[str] = frozenset()  # names of secret ones
    certificate: str = ""
    key: str = ""
    key_password: str = field(default="", repr=False)
    proxy: str = ""
    proxy_user: str = ""
    proxy_password: str = field(default="", repr=False)
    user_agent_suffix: str = ""
    media_bytes: tuple[tuple[str, int], ...] = ()  # longest answers, by media range; the last counts

    def longest(self, media_type: str) -> int | None:
        """Return the most bytes of an answer of `media_type`; None if only the general limit holds."""
        kinds = (media_type, f"{media_type.partition('/')[0]}/*", "*")
        return next((most for name, most in reversed(self.media_bytes) if name in kinds), None)

    def with_header(self, name: str, value: str, *, hidden: bool) -> "Access":
        """Return the same with one header field more, or with another value of it."""
        others = tuple((key, old) for key, old in self.headers if key.lower() != name.lower())
        names = self.hidden | {name} if hidden else self.hidden
        return replace(self, headers=(*others, (name, value)), hidden=names)


@dataclass(frozen=True, slots=True)
class Cookie:
    """A line of a cookies file."""

    domain: str
    below: bool  # whether hosts below the domain get it too
    path: str
    secure: bool
    text: str = field(repr=False)  # name=value

    def meant_for(self, scheme: str, host: str, path: str) -> bool:
        """Return whether a URL gets this cookie, as browsers judge it (RFC 6265, 5.4)."""
        if self.secure and scheme != "https":
            return False
        is_below = self.below and host.endswith(f".{self.domain}") and literal(host) is None
        if host != self.domain and not is_below:
            return False
        return path == self.path or path.startswith(self.path if self.path.endswith("/") else f"{self.path}/")


@dataclass(frozen=True, slots=True)
class _SiteAccess:
    """A table, ready to be asked."""

    match: str  # a host, *.domain, *, or a canonical URL
    origin: str  # of a URL; else empty
    table: SiteSection
    fields: tuple[tuple[str, str, bool], ...] = field(repr=False)  # name, value, whether it is a secret
    cookies: tuple[Cookie, ...] = field(repr=False)
    key_password: str = field(repr=False)
    proxy_password: str = field(repr=False)

    def has(self, url: str, host: str, origin: str) -> bool:
        if not self.origin:
            return self.table.has_host(host)
        below = self.match if self.match.endswith("/") else f"{self.match}/"
        return origin == self.origin and (url.partition("?")[0] == self.match or url.startswith(below))

    def over(self, access: Access, url: str) -> Access:
        """Return `access`, changed as the table says for `url`."""
        for name, value, secret in self.fields:
            access = access.with_header(name, value, hidden=secret)
        parts = split(url)
        path = parts.target.partition("?")[0]
        cookies = [cookie.text for cookie in self.cookies if cookie.meant_for(parts.scheme, parts.host, path)]
        if cookies:
            access = access.with_header("Cookie", "; ".join(cookies), hidden=True)
        table = self.table
        if table.certificate:
            access = replace(
                access,
                certificate=table.certificate,
                key=table.key or table.certificate,
                key_password=self.key_password,
            )
        if table.proxy:
            proxy = table.proxy.replace("socks5://", "socks5h://")  # names are the proxy's to look up
            access = replace(
                access,
                proxy=proxy,
                proxy_user=table.proxy_user,
                proxy_password=self.proxy_password if table.proxy_user else "",
            )
        if table.user_agent_suffix:
            access = replace(access, user_agent_suffix=table.user_agent_suffix)
        if table.media_bytes:
            access = replace(access, media_bytes=(*access.media_bytes, *table.media_bytes.items()))
        return access


class Sites:
    """The `[[site]]` tables of a crawl, in order. Raises ConfigurationError if one cannot be read."""

    def __init__(self, tables: Sequence[SiteSection], environment: Mapping[str, str] = os.environ) -> None:
        self._sites = [_site(table, environment) for table in tables]

    def __repr__(self) -> str:
        return f"Sites({', '.join(site.match for site in self._sites)})"

    def __bool__(self) -> bool:
        return bool(self._sites)

    def access(self, url: str) -> Access:
        """Return how the canonical `url` is asked."""
        parts = split(url)
        access = Access()
        for site in self._sites:
            if site.has(url, parts.host, parts.origin):
                access = site.over(access, url)
        return access

    def by_proxy(self, host: str) -> bool:
        """Return whether a proxy asks `host` for us, and so looks up its name."""
        return any(site.table.proxy and site.table.has_host(host) for site in self._sites)

    def delay_s(self, host: str) -> float | None:
        """Return the seconds that `host` rests after a request, or None if no table says so."""
        if not self._sites:
            return None
        delays = (site.table.delay_s for site in reversed(self._sites) if site.table.has_host(host))
        return next((delay for delay in delays if delay is not None), None)


def unused_proxies(tables: Sequence[SiteSection]) -> str:
    """Return a notice of proxies that the environment names and the settings do not; empty if there are none."""
    named = [name for name in _ENVIRONMENT if os.environ.get(name) or os.environ.get(name.upper())]
    if not named or any(table.proxy for table in tables):
        return ""
    return f"{named[0]} is set, but Fyke ignores it: name a proxy in the settings, under [[site]]"


def _site(table: SiteSection, environment: Mapping[str, str]) -> _SiteAccess:
    match, origin = table.match.lower(), ""
    if "://" in match:
        url = canonical(table.match)
        if url is None or "?" in url:
            raise _wrong(table, f"{table.match!r} is not a URL that others can be below")
        match, origin = url, split(url).origin
    fields = [(name, *_value(table, value, environment)) for name, value in table.headers.items()]
    if table.bearer:
        fields.append(("Authorization", f"Bearer {_read(table, table.bearer, environment)}", True))
    if table.user:
        login = f"{table.user}:{_read(table, table.password, environment)}"
        fields.append(("Authorization", f"Basic {b64encode(login.encode()).decode()}", True))
    key_password = _read(table, table.key_password, environment)
    _try_certificate(table, key_password)
    return _SiteAccess(
        match,
        origin,
        table,
        tuple(fields),
        tuple(_cookies(table)) if table.cookies else (),
        key_password,
        _read(table, table.proxy_password, environment),
    )


def _try_certificate(table: SiteSection, password: str) -> None:
    for path in (table.certificate, table.key):
        if path:
            _text_of(table, Path(path))
    if table.certificate and (why := why_unusable(table.certificate, table.key, password)):
        raise _wrong(table, why)


def _value(table: SiteSection, value: str, environment: Mapping[str, str]) -> tuple[str, bool]:
    if value.startswith(SECRET_PLACES):
        return _read(table, value, environment), True
    return value, False


def _read(table: SiteSection, place: str, environment: Mapping[str, str]) -> str:
    """Return the secret at `place`, env:NAME or file:PATH."""
    kind, _, name = place.partition(":")
    if not kind:
        return ""
    if kind == "env" and not environment.get(name):
        raise _wrong(table, f"the environment has no variable {name}: set it, and run the command again")
    text = environment[name] if kind == "env" else _text_of(table, Path(name)).rstrip("\r\n")
    if not text or not text.isprintable():
        raise _wrong(table, f"{place} is empty, or not one line of text")
    return text


def _text_of(table: SiteSection, path: Path) -> str:
    try:
        return text_of(path, MOST_CHARACTERS)
    except UnicodeDecodeError:
        raise _wrong(table, f"{path} cannot be read: not UTF-8") from None
    except (OSError, ValueError) as error:
        raise _wrong(table, f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _cookies(table: SiteSection) -> list[Cookie]:
    """Return the cookies of the file that have not expired, those for the longest paths first."""
    found = []
    for number, line in enumerate(_text_of(table, Path(table.cookies)).splitlines(), 1):
        line = line.removeprefix("#HttpOnly_")
        if not line.strip() or line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != 7 or not _EXPIRES.fullmatch(columns[4]) or not "".join(columns).isprintable():
            raise _wrong(
                table,
                f"line {number} of {table.cookies} is not a cookie: export them in Netscape format, seven columns",
            )
        domain, below, path, secure, expires, name, value = columns
        if int(expires) <= 0 or int(expires) > time.time():
            found.append(
                Cookie(
                    domain.lstrip(".").lower(),
                    below.upper() == "TRUE",
                    path,
                    secure.upper() == "TRUE",
                    f"{name}={value}" if name else value,
                )
            )
    return sorted(found, key=lambda cookie: -len(cookie.path))


def _wrong(table: SiteSection, what: str) -> ConfigurationError:
    return ConfigurationError(f"[[site]] of {table.match}: {what}")
