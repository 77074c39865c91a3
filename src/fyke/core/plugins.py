"""The protocols of plug-ins, one for each kind.

A plug-in is named in `fyke.toml` as `module:Name`, or by the name of an entry point in the group `fyke.<kind>`.
Filters, protocol and processing modules and sinks are lists under `[plugins]`, used in that order. A budget function is
named by `frontier.budget`, a crawl order by `frontier.order`. Each is made by calling it without arguments.

A plug-in that raises costs its page and is counted by name. A filter that raises refuses the URL.
"""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from fyke.core.batches import U64, Mask
from fyke.core.config import PluginsSection
from fyke.core.errors import PluginError
from fyke.core.pages import Page
from fyke.core.urls import SCHEMES
from fyke.core.visits import Exchange, Visit

Shares = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.integer]

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")


@runtime_checkable
class UrlFilter(Protocol):
    """Says which URLs may enter the frontier."""

    def accept(self, urls: pa.RecordBatch) -> Mask:
        """Return which rows of `urls` (schema `fyke.core.batches.URLS`) may be fetched: bool[n].

        Must be a pure function of URL, kind and depth: it is asked again by `fyke why`, for a URL that is met twice,
        and before a URL is fetched. If the file with its code changes, the next run takes it for an edited rule: what
        it refused is asked about anew.
        """
        ...


@runtime_checkable
class BudgetFunction(Protocol):
    """Says how many URLs of a domain may pass in a round."""

    def budgets(self, domains: U64, in_degree: U64, standing: Shares) -> Numbers:
        """Return the URLs a round for each of n domains, 0 to 65,535: integers [n].

        `domains`: the keys of their names (`fyke.core.urls.key_of`), uint64[n]. `in_degree`: how many other domains
        link to each, uint64[n]. `standing`: float64[n]; the first places are a hundredth of the domains met, at most
        10,000, and a domain's standing is the share of them that it stands above; 0 for a domain not among them.
        """
        ...


@runtime_checkable
class CrawlOrder(Protocol):
    """Says what is fetched first among the URLs that may be fetched."""

    def levels(self, urls: pa.RecordBatch) -> Numbers:
        """Return the priority of each row of `urls` (schema `fyke.core.batches.URLS`), 0 (first) to 7: integers [n]."""
        ...


@runtime_checkable
class ProtocolModule(Protocol):
    """Fetches the URLs of some schemes.

    A scheme may be one that Fyke does not have. Its URLs are `scheme://host/path`, with a port only if one is written.
    The host is a name or an address, and looked up like any other. robots.txt is obeyed as everywhere: the module is
    asked for `scheme://host/robots.txt` first. If there is none, it returns `Outcome.CLIENT_ERROR`, and all URLs are
    allowed; until any other failure is over, no URL is.
    """

    @property
    def schemes(self) -> Sequence[str]:
        """Schemes in small letters, for instance `["http", "news"]`."""
        ...

    def fetch(self, visit: Visit, address: str, done: Callable[[Exchange], None]) -> None:
        """Start fetching `visit` from the server at `address` (an IP address); call `done` once.

        Runs on the event loop and must not block; `done` is called later, on the same loop.
        """
        ...


@runtime_checkable
class ProcessingModule(Protocol):
    """Reads pages of some media types, for instance to extract or count something."""

    @property
    def media_types(self) -> Sequence[str]:
        """Media types, for instance `["text/html", "image/*"]`."""
        ...

    def process(self, page: Page) -> None:
        """Read `page`, whose links, title and robots directives are known. Results go into `page.findings`."""
        ...


@runtime_checkable
class PageSink(Protocol):
    """Receives every archived page, once it has been parsed."""

    def page(self, page: Page) -> None:
        """Take `page`. It comes once, and again after a kill if no checkpoint was written since."""
        ...

    def close(self) -> None:
        """End: no page comes any more."""
        ...


_KINDS = {"filters": UrlFilter, "protocols": ProtocolModule, "processors": ProcessingModule, "sinks": PageSink}


def schemes_of(modules: Iterable[ProtocolModule]) -> frozenset[str]:
    """Return the schemes that a crawl with the protocol modules `modules` fetches: Fyke's own and theirs.

    Raises PluginError for a text that is not a scheme.
    """
    schemes = set(SCHEMES)
    for module in modules:
        for scheme in module.schemes:
            if not _SCHEME.fullmatch(scheme):
                raise PluginError(
                    f"{type(module).__name__} names {scheme!r} as a scheme: use small letters, digits, +, - and ."
                )
            schemes.add(scheme)
    return frozenset(schemes)


def named(plugins: PluginsSection, kind: str) -> list[Any]:
    """Make the plug-ins of `kind` ("filters", "protocols", "processors" or "sinks") in `plugins`, in their order.

    Raises PluginError.
    """
    return [load_plugin(reference, kind, _KINDS[kind]) for reference in getattr(plugins, kind)]


def code_of(plugin: object) -> str:
    """Return a digest of the file that has the code of `plugin`; empty if there is no such file."""
    path = getattr(sys.modules.get(type(plugin).__module__), "__file__", None)
    with suppress(OSError):
        return xxhash.xxh3_64_hexdigest(Path(path).read_bytes()) if path else ""
    return ""


def load_plugin(reference: str, kind: str, protocol: type) -> Any:
    """Make the plug-in named `reference` (`module:Name`, or an entry point of group `fyke.<kind>`).

    Raises PluginError if it cannot be made, or does not fit `protocol`.
    """
    try:
        if ":" in reference:
            module, _, name = reference.partition(":")
            factory = getattr(import_module(module), name)
        else:
            entries = list(entry_points(group=f"fyke.{kind}", name=reference))
            if not entries:
                raise PluginError(f"there is no {kind[:-1]} {reference!r}: write module:Name for one of your own")
            factory = entries[0].load()
        plugin = factory()
        fits = isinstance(plugin, protocol) and all(map(_are_texts, _listed(plugin, protocol)))
    except PluginError:
        raise
    except Exception as error:  # a plug-in may raise anything
        what = f"{type(error).__name__}: {error}"
        raise PluginError(f"plug-in {reference!r} ({kind}) cannot be loaded: {what}") from error
    if not fits:
        raise PluginError(f"plug-in {reference!r} is not a {protocol.__name__}{lacking(plugin, protocol)}")
    return plugin


def lacking(plugin: Any, protocol: type) -> str:
    """Return what `plugin` lacks to fit `protocol`, as the end of a message."""
    missing = [name for name in vars(protocol) if not name.startswith("_") and not hasattr(plugin, name)]
    return f": it lacks {', '.join(missing)}; see fyke.core.plugins" if missing else ": see fyke.core.plugins"


def _listed(plugin: Any, protocol: type) -> list[Any]:
    """Return the lists of `plugin` that `protocol` has: schemes or media types."""
    return [getattr(plugin, name) for name in ("schemes", "media_types") if hasattr(protocol, name)]


def _are_texts(listed: Any) -> bool:
    return isinstance(listed, Iterable) and not isinstance(listed, str) and all(isinstance(one, str) for one in listed)
