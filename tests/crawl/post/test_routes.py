"""Who asks which host: a host is with one agent as long as visits of it are on their way."""

import asyncio
from types import SimpleNamespace
from typing import cast

from fyke.archive.division import Division
from fyke.core.batches import u64, url_batch
from fyke.core.urls import locate
from fyke.crawl.post.dealings import Dealings
from fyke.crawl.post.routes import UNPIN_S, Routes
from fyke.fetcher.names import Resolver

REST_S = 5.0


def test_a_host_stays_with_its_agent_while_visits_to_it_are_about_to_go_out() -> None:
    """Also where the time for which it is pinned is over in the same turn, or its agent cannot be reached now."""
    for there in (True, False):
        dealings = Dealings(0, [1], 1, REST_S)
        dealings.handed.holds(1, 1, (), (), 0.0)
        reached = [there]
        dealings.reachable = lambda other, reached=reached: reached[0]  # type: ignore[method-assign]
        resolver = cast(Resolver, SimpleNamespace(cached=lambda name: None))
        routes = Routes(0, Division(2, 2), dealings, resolver, asyncio.Event())
        visits = url_batch([locate("http://host.example/page")])
        host = int(u64(visits, "host")[0])
        dealings.handed.pin(host, 1, 0.0)
        later = REST_S + 2 * UNPIN_S
        routes.sort(visits)
        went = []
        for now in (later, later + 2 * UNPIN_S):
            for agent, urls in routes.due(now):
                dealings.handed.hand(agent, 1, zip(u64(urls, "key").tolist(), u64(urls, "host").tolist(), strict=True))
                went.append(agent)
            assert went == [1] * reached[0]
            reached[0] = True
        assert dealings.handed.agent_of(host) == 1
