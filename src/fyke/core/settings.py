"""The base of sections of settings, and kinds of values."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from fyke.core.hours import valid_hours
from fyke.core.urls import canonical, split


class Section(BaseModel):
    """A table of settings: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def header_line(text: str) -> str:
    """Return `text` if it can be sent in a header: one line without control characters. Raises ValueError."""
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError("it is sent in a header: write one line without control characters")
    return text


def _ascii_line(text: str) -> str:
    if not text.isascii():
        raise ValueError("it is sent in the User-Agent: write an address or a URL in ASCII, without accents")
    return header_line(text)


def host_of(name: str) -> str:
    """Return the host `name` as it stands in URLs; empty if it is more than a host, or none."""
    url = canonical(f"http://{name}/") if name and not re.search(r"[*@\s\\]|:\d*$", name) else None
    host = split(url).host if url else ""
    return host if url == f"http://{host}/" else ""


def _domain(text: str) -> str:
    """Return the domain `text`, also written `*.domain` or `.domain`, as it stands in URLs."""
    if not (host := host_of(text.strip().removeprefix("*.").strip("."))):
        raise ValueError("not a host or domain: write a name such as intranet.example.org")
    return host


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("write a number, not true or false")
    return value


Whole = Annotated[int, BeforeValidator(_number)]
Real = Annotated[float, BeforeValidator(_number)]
Seconds = Annotated[Real, Field(ge=0, le=1e9)]
Wait = Annotated[Real, Field(gt=0, le=1e9)]  # seconds, more than 0
Count = Annotated[Whole, Field(ge=0, le=10**15)]
Positive = Annotated[Whole, Field(gt=0, le=10**15)]
HoursText = Annotated[str, AfterValidator(valid_hours)]
Line = Annotated[str, AfterValidator(_ascii_line)]
Domain = Annotated[str, AfterValidator(_domain)]
