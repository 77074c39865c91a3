"""Rules that make one URL of the many that lead to the same page, and the file in which a person edits them.

These URLs are DUST, different URLs with similar text (Bar-Yossef, Keidar, Schonfeld: Do not crawl in the DUST, WWW
2007). `fyke.rewrite` learns rules from fetched pages; `core/rewriting` applies them to URLs. A rule has one of six
shapes and is for one host. No shape is a regular expression: each takes time linear in the URL.

Invariant: `load` returns the rules that `render` wrote.
"""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fyke.core.config import CrawlSection, literal, read
from fyke.core.errors import ConfigurationError
from fyke.core.urls import canonical, key_of

FILE = "rewrite.toml"  # in the directory of the crawl that taught
MOST_RULES = 100_000  # in a file
LEAST_TOKEN = 8  # characters of a session id in a path

_HEAD = """\
# The same page under many URLs: rules learned from the pages of a crawl, one in a table. Delete those you do not want.
# Only fyke crawl --rewrite FILE uses these rules, and only those with use = true.
# drop-key: remove `key` from the query (only with the value `value`, and at the path `path`, if these are given).
# sort-keys: the order of the keys of the query does not matter.
# index-page: remove the last segment `key` from the path, if no query is left.
# drop-parameter: remove ;key=... from segments of the path.
# drop-segment: remove segment `place` (from 0; from the end if negative) from the path, if it is `key`; or if it is
#   `prefix`, then `length` (least, most) letters and digits with a digit among them, then `suffix`.
# host: pages of `host` are at the host `to`.
# view = true: the pages are not the same, but what the rule makes holds all that the other says and leads to: print
#   views, pages for small screens.
# support: number of contents that were found under several URLs which the rule makes one; contradictions: number of
# times that the contents of such URLs differed. example: a URL before and after the rule. against: two URLs that the
# rule makes one, although their contents differed. Look at them: if they are two pages, the rule would lose one; if
# they are one page that changed meanwhile, the rule is right.
"""


class Shape(StrEnum):
    """The effect of a rule on a URL."""

    DROP_KEY = "drop-key"
    SORT_KEYS = "sort-keys"
    INDEX_PAGE = "index-page"
    DROP_PARAMETER = "drop-parameter"
    DROP_SEGMENT = "drop-segment"
    HOST = "host"


_NEEDS_KEY = {Shape.DROP_KEY, Shape.INDEX_PAGE, Shape.DROP_PARAMETER}
Count = Annotated[int, Field(ge=0)]


class Rule(BaseModel):
    """One rule. Raises ValidationError if the values make no rule."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    shape: Shape
    host: str
    use: bool = True
    key: str = ""
    value: str | None = None
    path: str = ""
    view: bool = False
    place: int = 0
    prefix: str = ""
    suffix: str = ""
    length: tuple[Count, Count] = (0, 0)
    to: str = ""
    support: Count = 0
    contradictions: Count = 0
    example: tuple[str, str] = ("", "")
    against: tuple[str, str] = ("", "")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not _is_host(self.host):
            raise ValueError(f"host = {self.host!r} is not a host: write its name as it stands in URLs")
        if self.shape is Shape.HOST and (not _is_host(self.to) or self.to == self.host):
            raise ValueError(f"to = {self.to!r} is not the name of another host")
        if (self.shape in _NEEDS_KEY and not self.key) or any(sign in self.key for sign in "/?#&;="):
            raise ValueError(f"key = {self.key!r} is not a key: write it as it stands in URLs")
        if self.path and (self.shape is not Shape.DROP_KEY or not _is_path(self.path)):
            raise ValueError(f"path = {self.path!r} is only for drop-key: write it as in URLs, without the first slash")
        whole = "/" not in self.prefix + self.suffix and LEAST_TOKEN <= self.length[0] <= self.length[1]
        if self.shape is Shape.DROP_SEGMENT and not self.key and not (whole and self.place >= 0):
            raise ValueError(
                f"write key, or place from 0 and length = [least, most] from {LEAST_TOKEN}; prefix and suffix without /"
            )
        return self

    @property
    def name(self) -> str:
        """The effect in words: the same for two rules with the same effect."""
        what = {
            Shape.DROP_KEY: (self.key if self.value is None else f"{self.key}={self.value}")
            + (f" at /{self.path}" if self.path else ""),
            Shape.DROP_SEGMENT: f"{self.place} "
            + (self.key or f"{self.prefix}[{self.length[0]}-{self.length[1]}]{self.suffix}"),
            Shape.HOST: f"{self.host} to {self.to}",
        }.get(self.shape, self.key)
        where = "" if self.shape is Shape.HOST else f"on {self.host}"
        return " ".join(word for word in (self.shape.value, what, where) if word)


def _is_host(name: str) -> bool:
    return canonical(f"http://{name}/") == f"http://{name}/"


def _is_path(path: str) -> bool:
    return "?" not in path and canonical(f"http://a.test/{path}") == f"http://a.test/{path}"


def load(path: Path) -> list[Rule]:
    """Return the rules of the file at `path`, in its order. Raises ConfigurationError."""
    values = read(path)
    tables = values.pop("rule", [])
    if values or not isinstance(tables, list):
        raise ConfigurationError(f"{path}: a file of rules holds tables [[rule]] and nothing else")
    if len(tables) > MOST_RULES:
        raise ConfigurationError(f"{path}: more than {MOST_RULES:,} rules")
    rules = []
    for number, table in enumerate(tables, 1):
        try:
            rules.append(Rule.model_validate(table))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(step) for step in first["loc"])
            message = first["msg"].removeprefix("Value error, ")
            if first["type"] == "extra_forbidden":
                message = "unknown key"
            of = f" of {table['host']!r}" if isinstance(table, dict) and "host" in table else ""
            raise ConfigurationError(f"{path}: rule {number}{of}: {f'{place}: ' if place else ''}{message}") from None
    return rules


def rewrite_rules_of(crawl: CrawlSection) -> list[Rule]:
    """Return the rules by which `crawl` rewrites links; none if it does not. Raises ConfigurationError."""
    return load(Path(crawl.rewrite)) if crawl.rewrite else []


def render(rules: Sequence[Rule]) -> str:
    """Return `rules` as TOML, for people."""
    lines = [_HEAD]
    for rule in rules:
        keys = rule.model_dump(mode="json", exclude_defaults=True)
        lines += ["\n[[rule]]\n", *(f"{key} = {literal(value)}\n" for key, value in keys.items())]
    return "".join(lines)


def identity(rules: Sequence[Rule]) -> int:
    """Return a key of the joint effect of `rules`."""
    return key_of("\n".join(sorted(rule.name for rule in rules)))
