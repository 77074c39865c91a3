"""The settings of a crawl: one TOML file of frozen sections.

Each section is given to the one room that uses it. Units are in the names. An unknown key is an
error. A limit of zero means "no limit". `render` writes the complete file with a
sentence a key, as `fyke.toml` in every crawl directory; `load` reads it back.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, Field, ModelWrapValidatorHandler, ValidationError, ValidationInfo, model_validator

from fyke.core.choices import Enforcement, Scope
from fyke.core.errors import ALLOW, ConfigurationError, whose
from fyke.core.extraction import ExtractSection, FieldSection, different_tables
from fyke.core.settings import Count, Domain, HoursText, Line, Positive, Real, Seconds, Section, Wait, Whole
from fyke.core.site import SiteSection
from fyke.core.text_files import text_of

MOST_SHOWN = 200  # characters of a value that cannot be used


def _product_token(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_-]+", text):
        raise ValueError(
            "a name in robots.txt has only letters, - and _ (RFC 9309, 2.2.1): no digit, no space, no version"
        )
    return text


class CrawlSection(Section):
    """The pages to crawl, and limits."""

    seeds: list[str] = Field([], description="URLs where the crawl begins.")
    scope: Scope = Field(
        Scope.HOST,
        description="Links to follow: seeds (none), web (all), or those within the prefix (folder), host or domain of"
        " a seed or of a page that it redirects to.",
    )
    pages: Count = Field(0, description="Stop after this many pages; 0: no limit.")
    bytes: Count = Field(0, description="Stop after this many bytes of bodies; 0: no limit.")
    for_s: Seconds = Field(
        0, description="Stop this many seconds after the command began, pauses included; 0: no limit."
    )
    wait_s: Seconds = Field(
        3600,
        description="Longest wait if all remaining hosts rest, or the disk is full; then the crawl ends. Hours of the"
        " day are waited for however long it takes.",
    )
    depth: Count = Field(0, description="Follow links at most this many steps from a seed; 0: no limit.")
    allow: list[str] = Field([], description="If any are given, a URL must match one of these RE2 expressions.")
    deny: list[str] = Field([], description="A URL that matches one of these RE2 expressions is left out.")
    sitemaps: bool = Field(
        True, description="Read the sitemaps that robots.txt names; sitemaps and feeds do not count as pages."
    )
    agents: Annotated[Whole, Field(gt=0, le=64)] = Field(
        1,
        description="Number of processes that crawl; more than one helps if cores are idle and many hosts are in"
        " scope.",
    )
    rewrite: str = Field(
        "",
        description="A file of rewrite rules that fyke rewrite wrote; empty: none.",
    )
    requisites: bool = Field(
        False, description="Also fetch images, styles and scripts, up to two steps beyond the scope."
    )


class AgentSection(Section):
    """The crawler's name and contact."""

    user_agent: Annotated[str, AfterValidator(_product_token)] = Field(
        "fyke",
        description="The crawler's name: in the User-Agent, and for the rules of robots.txt.",
    )
    contact: Line = Field(
        "",
        description="A URL or e-mail address for owners of sites, sent with every request.",
    )


class PolitenessSection(Section):
    """Rests between requests. A host rests for the longest of its delays. A server address rests for its own delay."""

    host_delay_s: Seconds = Field(1.0, description="Least time between two requests to a host, in seconds.")
    address_delay_s: Seconds = Field(1.0, description="Least time between two requests to a server address.")
    min_host_delay_s: Seconds = Field(
        1.0,
        description="The larger a domain's budget, the shorter the rest of its hosts: from host_delay_s down to this.",
    )
    min_address_delay_s: Seconds = Field(
        1.0,
        description="The larger the mean budget of an address's domains, the shorter its rest: from address_delay_s"
        " down to this.",
    )
    delay_factor: Annotated[Real, Field(ge=0, le=1e6)] = Field(
        10.0, description="A host rests at least this many times as long as its last download took."
    )
    max_delay_s: Seconds = Field(60.0, description="Longest rest that delay_factor may ask for.")
    host_failures: Positive = Field(8, description="Failures in a row after which a host is given up.")
    failure_delay_s: Seconds = Field(
        15.0,
        description="Rest of a host after its first failure; twice as long after a 429 or 503 without Retry-After. It"
        " doubles with each further failure. A page that fails waits as long, and twice as long after each further"
        " failure of its own.",
    )
    max_sleep_s: Seconds = Field(3600.0, description="Longest rest of a failing host; a Retry-After may ask for more.")
    tries: Positive = Field(4, description="Number of visits to a URL after which its failure is final.")
    hours: HoursText = Field(
        "", description='Hours of the day in which requests are sent: "22-6", or "22:30-6 Europe/Berlin"; empty: any.'
    )


class FetchSection(Section):
    """Limits of one download."""

    connections: Annotated[Whole, Field(gt=0, le=10_000)] = Field(
        256,
        description="Downloads at a time from fast hosts; up to three times as many more may run from slow or new"
        " hosts.",
    )
    connect_timeout_s: Seconds = Field(15.0, description="Longest time to connect, TLS included.")
    timeout_s: Seconds = Field(300.0, description="Longest time for a whole download.")
    stall_s: Annotated[Whole, Field(gt=0, le=10**6)] = Field(
        20,
        description="A download that is slower than 64 bytes a second for this many seconds (a whole number) is"
        " broken off.",
    )
    max_body_bytes: Positive = Field(
        64 << 20,
        description="Longest body, packed or unpacked; a longer one is cut here, and archived as cut.",
    )
    verify_tls: bool = Field(True, description="Refuse servers whose certificate cannot be verified.")
    ca_file: str = Field("", description="Certificates to trust, a PEM file; empty: the system's.")


class DnsSection(Section):
    """How names become addresses."""

    servers: list[str] = Field([], description="Name servers, address or address:port; empty: the system's.")
    timeout_s: Wait = Field(5.0, description="Longest wait for one answer.")
    tries: Positive = Field(3, description="Number of times a name is asked for, over all servers.")
    negative_ttl_s: Seconds = Field(
        600.0, description="After a name was not found, it is not asked for again for this long."
    )
    private: list[Domain] = Field(
        [], description="Domains whose hosts may have private addresses; hosts of seeds always may."
    )


class FrontierSection(Section):
    """Memory for waiting URLs, budgets of domains, and the order of visits."""

    window_visits: Positive = Field(20_000, description="Visits held in memory for politeness to choose from.")
    host_visits: Positive = Field(
        500, description="Most of these visits for one host; further visits to it wait on disk."
    )
    table_memory_bytes: Positive = Field(
        8 << 20,
        description="Memory for the rows that wait to be merged into a table on disk, for each table; four times as"
        " much for the table of URLs seen.",
    )
    budget: str = Field(
        "reputation",
        description="How many URLs of a domain each round lets through (its budget): reputation (more for the"
        " hundredth of domains that most others link to), equal, or popular (only that hundredth, and seeds).",
    )
    default_budget_urls: Positive = Field(10, description="Budget of a domain without reputation.")
    max_budget_urls: Annotated[Whole, Field(gt=0, le=65_535)] = Field(
        10_000, description="Budget of the domain that most others link to."
    )
    enforcement: Enforcement = Field(
        Enforcement.BEAST, description="How URLs over their domain's budget wait: beast, naive (two queues) or none."
    )
    order: str = Field(
        "breadth-first",
        description="Order of URLs in a round: breadth-first, depth, in-degree, patterns or random.",
    )
    order_patterns: list[str] = Field(
        [], description="For order = patterns: RE2 expressions; URLs that match the first are fetched first, and so on."
    )
    trap_pages: Annotated[Whole, Field(ge=0, le=10_000)] = Field(
        6,
        description="If this many pages with similar URLs brought hardly any new text, such URLs come last; for a"
        " folder, or the hosts of a domain, twice as many pages; 0: never.",
    )
    probes: bool = Field(
        False,
        description="Sometimes ask a host whose known URLs grow faster than they are fetched for a page that cannot"
        " exist; if it answers with new text each time, its URLs come last.",
    )


class RevisitSection(Section):
    """How pages are visited again by a crawl that never ends: fyke crawl --revisit."""

    share: Annotated[Real, Field(ge=0, le=1)] = Field(
        0.5, description="Share of visits that go to known pages while new pages wait; if no new page waits, all do."
    )
    least_s: Wait = Field(3600.0, description="Least time between two visits to a page.")
    greatest_s: Seconds = Field(
        30 * 86400.0,
        description="Most time between two visits to a page; before, it is due when it is likely to have changed.",
    )
    weights: str = Field(
        "",
        description="Weights of pages: in-degree, or a CSV or Parquet file with columns url and weight; empty: all"
        " equal.",
    )


class StoreSection(Section):
    """The archive and its tables."""

    warc_bytes: Positive = Field(
        1_000_000_000, description="Length in bytes at which a WARC file is closed, and the next begins."
    )
    table_rows: Positive = Field(
        200_000, description="Rows in one Parquet file of the table pages; a file of links holds 20 times as many."
    )
    links: bool = Field(True, description="Write the table of links, which fyke links needs.")
    checkpoint_s: Wait = Field(
        10.0, description="Time between checkpoints; a crash repeats at most the work since the last one."
    )


class PluginsSection(Section):
    """Plug-ins, each named as `module:Name` or by its entry point, used in this order."""

    filters: list[str] = Field([], description="URL filters, which say whether a URL is fetched.")
    protocols: list[str] = Field(
        [], description="Protocol modules, which fetch URLs of a scheme; they are asked before the built-in ones."
    )
    processors: list[str] = Field([], description="Processing modules, which are given the pages of some media types.")
    sinks: list[str] = Field([], description="Page sinks, which are given every page.")


class Config(Section):
    """The whole of `fyke.toml`. Raises ConfigurationError for a value that cannot be used."""

    crawl: CrawlSection = CrawlSection()
    agent: AgentSection = AgentSection()
    politeness: PolitenessSection = PolitenessSection()
    fetch: FetchSection = FetchSection()
    dns: DnsSection = DnsSection()
    frontier: FrontierSection = FrontierSection()
    revisit: RevisitSection = RevisitSection()
    store: StoreSection = StoreSection()
    plugins: PluginsSection = PluginsSection()
    site: list[SiteSection] = Field([])
    extract: Annotated[list[ExtractSection], AfterValidator(different_tables)] = Field([])

    if TYPE_CHECKING:  # sections are given as mappings, `Config(politeness={"host_delay_s": 2.0})`

        def __init__(  # noqa: PLR0913 - one parameter a section
            self,
            *,
            crawl: Mapping[str, Any] = ...,
            agent: Mapping[str, Any] = ...,
            politeness: Mapping[str, Any] = ...,
            fetch: Mapping[str, Any] = ...,
            dns: Mapping[str, Any] = ...,
            frontier: Mapping[str, Any] = ...,
            revisit: Mapping[str, Any] = ...,
            store: Mapping[str, Any] = ...,
            plugins: Mapping[str, Any] = ...,
            site: Sequence[Mapping[str, Any]] = ...,
            extract: Sequence[Mapping[str, Any]] = ...,
        ) -> None: ...

    @property
    def sections(self) -> list[tuple[str, Section]]:
        """The sections that every crawl has, by name."""
        return [(name, section) for name, section in self if isinstance(section, Section)]

    @model_validator(mode="wrap")
    @classmethod
    def _explained(cls, values: Any, validated: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        source = info.context["source"] if info.context else "fyke.Config"
        try:
            if text := _with_nul(values):
                raise ConfigurationError(f"{source}: {_shown(text)} contains a NUL character, which is not allowed")
            return validated(values)
        except ValidationError as error:
            raise ConfigurationError(_explain(error, source)) from None
        except (OverflowError, RecursionError, ValueError) as error:
            raise ConfigurationError(f"{source}: a value is too large, or nested too deeply ({error})") from None


def build(values: dict[str, Any], source: str) -> Config:
    """Make a Config from nested values. Raises ConfigurationError, which names `source`, the key and the remedy."""
    return Config.model_validate(values, context={"source": source})


def load(path: Path) -> Config:
    """Return the Config in the TOML file at `path`. Raises ConfigurationError."""
    return build(read(path), str(path))


def read(path: Path) -> dict[str, Any]:
    """Return the nested values of the TOML file at `path`. Raises ConfigurationError."""
    try:
        return tomllib.loads(text_of(path))
    except PermissionError as error:
        raise ConfigurationError(f"cannot read {path}{whose(path)}: {error.strerror}; {ALLOW}") from None
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:  # also of bytes that are not text, and of a number of thousands of digits
        raise ConfigurationError(f"{path} is not TOML: {error}") from None
    except RecursionError:
        raise ConfigurationError(f"{path} cannot be read: its tables are nested too deeply") from None


def _explain(error: ValidationError, source: str) -> str:
    first = max(error.errors(), key=lambda each: len(each["loc"]))  # the one within a field's table
    in_field = FieldSection.__name__ in first["loc"]
    place = _cut(".".join(str(step) for step in first["loc"] if step != FieldSection.__name__))
    message = first["msg"].removeprefix("Value error, ")
    if len(message) > 2 * MOST_SHOWN:  # it names a long value, and says behind it what is wrong
        message = f"{message[:MOST_SHOWN]}…{message[-MOST_SHOWN:]}"
    message = message[:1].lower() + message[1:]
    if first["type"] == "extra_forbidden":
        section = first["loc"][0] if len(first["loc"]) > 1 else ""
        known = Config.model_fields
        if section:
            kind = FieldSection if in_field else _TABLES.get(str(section)) or known[str(section)].annotation
            known = kind.model_fields  # type: ignore[union-attr]
        return f"{source}: unknown key {place}; known here: {', '.join(known)}"
    if len(first["loc"]) == 1 and place in Config.model_fields and first["type"] != "value_error":
        if not isinstance(first["input"], dict | list):
            table = f"[[{place}]]" if place in _TABLES else f"[{place}]"
            given = place if place == "site" else f"{place} = {_shown(first['input'])}"  # which may be a secret
            return f"{source}: {given} is not a table: write {table}, and its keys below it"
        if place in _TABLES:
            return f"{source}: [{place}] must be a list of tables: write [[{place}]]"
        return f"{source}: [[{place}]] must be a single table: write [{place}]"
    if first["loc"][:1] == ("site",) or place in _TABLES or isinstance(first["input"], dict):  # a secret, or long
        return f"{source}: {place} cannot be used: {message}"
    return f"{source}: {place} = {_shown(first['input'])} cannot be used: {message}"


def _shown(value: Any) -> str:
    """Return `value` as a line of at most `MOST_SHOWN` characters."""
    try:
        text = repr(value)
    except ValueError:  # a number with more digits than Python writes
        return "a huge number"
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _with_nul(value: Any) -> str:
    """Return a text within `value` that holds a NUL, which no file name and no header field may, or ""."""
    if isinstance(value, str):
        return value if "\0" in value else ""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    return next(filter(None, map(_with_nul, value)), "") if isinstance(value, list | tuple) else ""


_TABLES: dict[str, type[Section]] = {"site": SiteSection, "extract": ExtractSection}


def render(config: Config) -> str:
    """Return `config` as complete TOML, one sentence a key."""
    lines = ["# The settings of this crawl. `fyke crawl --config` reads this file.\n"]
    for name, section in config.sections:
        lines.append(f"\n# {type(section).__doc__}\n[{name}]\n")
        for key, value in section:
            lines.append(f"# {type(section).model_fields[key].description}\n{key} = {literal(value)}\n")
    for name in _TABLES:
        for table in getattr(config, name):
            keys = table.model_dump(mode="json", exclude_defaults=True)
            lines += [f"\n[[{name}]]\n", *(f"{key} = {literal(value)}\n" for key, value in keys.items())]
    return "".join(lines)


def literal(value: Any) -> str:
    """Return `value` as TOML."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{literal(key)} = {literal(item)}' for key, item in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(literal(item) for item in value)}]"
    if isinstance(value, str):
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007F")
    return json.dumps(value)
