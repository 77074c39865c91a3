"""Settings for some sites: the tables `[[site]]`, and the places of their secrets."""

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from fyke.core.settings import Count, HoursText, Line, Seconds, Section, header_line, host_of

SECRET_PLACES = ("env:", "file:")
_FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OUR_FIELDS = {
    "host", "user-agent", "accept-encoding", "connection", "content-length", "transfer-encoding", "range", "expect",
    "upgrade",
}  # fmt: skip
_SECRET_FIELD = re.compile(r"auth|token|key|secret|cookie|session|password", re.IGNORECASE)


def _media_range(text: str) -> str:
    if not re.fullmatch(r"\*|[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+)", text):
        raise ValueError("write a media type like text/html, video/* for all videos, or * for all; in small letters")
    return text


def _match(text: str) -> str:
    """Return `text` with its host in canonical form. Raises ValueError if it is neither a host nor a URL."""
    if "://" in text:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#@]+(?:/[^?#]*)?", text):
            raise ValueError("write the URL without a query, user or password; the last two have their own keys")
        return text
    name = text.removeprefix("*.")
    host = host_of(name)
    if text != "*" and not host:
        raise ValueError(
            "not a host: write www.example.org, *.example.org, * for all hosts, or a URL if there is a port"
        )
    return text if text == "*" else text[: len(text) - len(name)] + host


def _proxy(text: str) -> str:
    """Return `text` with its host in canonical form. Raises ValueError if it is not a proxy."""
    if not text:
        return text
    parts = re.fullmatch(r"(https?|socks5)://([^/?#@\s\\]+):(\d{1,5})/?", text)
    host = host_of(parts[2]) if parts else ""
    if not parts or not host or not 0 < int(parts[3]) < 65536:
        raise ValueError("write proxy = http://host:port, https:// or socks5://; the user name goes into proxy_user")
    return f"{parts[1]}://{host}:{parts[3]}"


def _secret(text: str) -> str:
    if text and not text.startswith(SECRET_PLACES):
        raise ValueError("do not write a secret into settings: write env:NAME or file:PATH, where it is")
    return text


def _check_field(name: str, value: str) -> None:
    """Raise ValueError if Fyke may not send the header field `name` with `value`."""
    if not _FIELD_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name for a header field")
    if name.lower() in _OUR_FIELDS:
        raise ValueError(f"leave out {name}: Fyke sends it; user_agent_suffix adds to the User-Agent")
    if not value.strip():
        raise ValueError(f"{name} is empty: give a value, or leave the field out")
    check = _secret if _SECRET_FIELD.search(name) else header_line
    check(value)


MediaRange = Annotated[str, AfterValidator(_media_range)]
Secret = Annotated[str, AfterValidator(_secret)]


class SiteSection(Section):
    """Settings for the sites that match. If several of these tables match, the last one with a setting counts.

    A secret is given as env:NAME or file:PATH, and sent only to the origin that `match` names.
    """

    match: Annotated[str, AfterValidator(_match)] = Field(
        description="A host, *.domain, * for all hosts, or a URL, which also stands for all URLs below it."
    )
    headers: dict[str, str] = Field({}, description="Header fields to send; secrets as env:NAME or file:PATH.")
    cookies: str = Field("", description="Cookies to send: a file in Netscape format, as browsers export it.")
    user: str = Field("", description="User name for Basic authentication.")
    password: Secret = Field("", description="Password of that user.")
    bearer: Secret = Field("", description="A bearer token to send.")
    certificate: str = Field("", description="Client certificate, a PEM file; it may hold the key as well.")
    key: str = Field("", description="Key of the certificate, a PEM file.")
    key_password: Secret = Field("", description="The key's password.")
    proxy: Annotated[str, AfterValidator(_proxy)] = Field(
        "", description="Proxy: http://, https:// or socks5:// with host and port."
    )
    proxy_user: str = Field("", description="User name for the proxy.")
    proxy_password: Secret = Field("", description="Password for the proxy.")
    user_agent_suffix: Line = Field("", description="Text to add to the User-Agent.")
    delay_s: Seconds | None = Field(
        None,
        description="Rest between two requests to the host; replaces the delays of [politeness], but not a"
        " Crawl-delay.",
    )

    hours: HoursText = Field(
        "", description='Hours of the day in which requests are sent, as in [politeness]; "0-24": any.'
    )
    pages: Count | None = Field(None, description="Most pages to fetch of each host; 0: no limit.")
    media_bytes: dict[MediaRange, Count] = Field(
        {}, description='Longest answer in bytes by media type, such as "video/*" = 0; a longer one is broken off.'
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for name, value in self.headers.items():
            _check_field(name, value)
        of_hosts = self.proxy or self.hours or self.delay_s is not None or self.pages is not None
        if of_hosts and "://" in self.match:
            raise ValueError("proxy, delay_s, hours and pages are for whole hosts: let match be a host, *.domain or *")
        if self.has_secrets and not re.fullmatch(r"https?://[^/?#@]+(?:/[^?#]*)?", self.match):
            raise ValueError("a secret is for one origin: let match be a URL, such as https://example.org/")
        if self.password and not self.user:
            raise ValueError("it has a password but no user: give both")
        if self.bearer and self.user:
            raise ValueError("it has both bearer and user: give one of them")
        return self

    def has_host(self, host: str) -> bool:
        """Return whether it is for the whole of `host` (a name, lower case)."""
        match = self.match.lower()
        return match in ("*", host) or (match[:2] == "*." and host.endswith(match[1:]))

    @property
    def has_secrets(self) -> bool:
        """Whether it has secrets, which must reach no other origin."""
        hidden = any(value.startswith(SECRET_PLACES) for value in self.headers.values())
        return bool(hidden or self.cookies or self.user or self.bearer or self.certificate)
