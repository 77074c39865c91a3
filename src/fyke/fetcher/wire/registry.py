"""Which module speaks this scheme? The built-in protocol modules and the plug-ins, plug-ins first.

The fetcher asks it for every visit. A plug-in that raises costs its page and is counted by its class name.
This is the last door before the wire: an address that is not public is asked only at a host and port that
`may_be_private` allows.

Invariant: `done` is called at most once for a visit, also by a plug-in that calls it twice or calls it and then raises,
and never from inside `fetch`.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from fyke.core.clock import Clock
from fyke.core.config import AgentSection
from fyke.core.outcomes import Outcome
from fyke.core.plugins import ProtocolModule
from fyke.core.urls import SCHEMES, UrlParts
from fyke.core.visits import Exchange, Visit
from fyke.fetcher.access import Sites
from fyke.fetcher.addresses import PROXIED, is_public
from fyke.fetcher.wire.curl import CurlClient
from fyke.fetcher.wire.ftp import Ftp
from fyke.fetcher.wire.gopher import Gopher
from fyke.fetcher.wire.http import Http, SitesHttp
from fyke.fetcher.wire.request import Done


class Registry:
    """Protocol modules by scheme. The first of `plugins`, then of `built_in`, that names a scheme has it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        built_in: Sequence[ProtocolModule],
        plugins: Sequence[ProtocolModule],
        may_be_private: Callable[[UrlParts], bool] | None,
    ) -> None:
        """`may_be_private` takes the parts of a URL; without it every address may be asked."""
        self._loop = loop
        self._clock = clock
        self._built_in: dict[str, ProtocolModule] = {}
        self._plugins: dict[str, ProtocolModule] = {}
        self._may_be_private = may_be_private
        self.plugin_failures: Counter[str] = Counter()  # by class name
        for modules, by_scheme in ((built_in, self._built_in), (plugins, self._plugins)):
            for module in modules:
                for scheme in module.schemes:
                    by_scheme.setdefault(scheme, module)

    def __repr__(self) -> str:
        return f"Registry({', '.join(sorted(self._built_in | self._plugins))})"

    def fetch(self, visit: Visit, address: str, done: Done) -> None:
        """Have `visit` fetched from the server at `address`; `done` is called later, on the loop."""
        scheme = visit.url.partition(":")[0]
        if address.startswith(PROXIED):
            refusal = "" if scheme in Http.schemes else f"proxies are not used for {scheme}"
        else:
            refusal = self._refusal(visit, address) if scheme in SCHEMES and not is_public(address) else ""
        if refusal:
            refused = Exchange(visit, Outcome.ADDRESS_REFUSED, self._clock.now(), 0.0, "", refusal)
            self._loop.call_soon(done, refused)
        elif (plugin := self._plugins.get(scheme)) is not None:
            self._by_plugin(plugin, visit, address, done)
        elif (module := self._built_in.get(scheme)) is not None:
            module.fetch(visit, address, done)
        else:
            why = f"no protocol module for {scheme!r}"
            self._loop.call_soon(done, Exchange(visit, Outcome.UNSUPPORTED, self._clock.now(), 0.0, address, why))

    def _refusal(self, visit: Visit, address: str) -> str:
        """Return why `visit` may not be made at an `address` that is not public; empty if it may."""
        parts = visit.parts
        if self._may_be_private is None or self._may_be_private(parts):
            return ""
        asked = f"its port {parts.port} for {parts.scheme}"
        return f"{parts.host} is at {address}, not a public address, and no seed names {asked}"

    def _by_plugin(self, plugin: ProtocolModule, visit: Visit, address: str, done: Done) -> None:
        waiting = [done]
        started_at = self._clock.now()

        def failed(how: str) -> Exchange:
            name = type(plugin).__name__
            self.plugin_failures[name] += 1
            return Exchange(visit, Outcome.PLUGIN_FAILED, started_at, 0.0, address, f"{name}: {how}")

        def once(exchange: Exchange) -> None:
            if waiting:
                fits = isinstance(exchange, Exchange) and exchange.visit.key == visit.key
                answer = exchange if fits else failed(f"answered with another visit, or a {type(exchange).__name__}")
                self._loop.call_soon(waiting.pop(), answer)

        try:
            plugin.fetch(visit, address, once)
        except Exception as error:  # noqa: BLE001 - whatever a plug-in raises costs its page, nothing else
            once(failed(repr(error)))


def build_registry(
    loop: asyncio.AbstractEventLoop,
    curl: CurlClient,
    agent: AgentSection,
    clock: Clock,
    plugins: Sequence[ProtocolModule] = (),
    may_be_private: Callable[[UrlParts], bool] | None = None,
    sites: Sites | None = None,
) -> Registry:
    """Return the registry of a crawl: http, https, ftp and gopher over `curl`, after `plugins`."""
    http = SitesHttp(curl, agent, sites) if sites else Http(curl, agent)
    return Registry(loop, clock, [http, Ftp(curl, agent), Gopher(curl)], plugins, may_be_private)
