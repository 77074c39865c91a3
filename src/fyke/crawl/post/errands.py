"""Errands: a robots.txt that redirects to a host which another agent may have to ask.

    fetcher ─► wanted ─► shard of the host ─► agent of its address ─► made ─► shard ─► fetcher

An errand is a visit to which another host's robots.txt redirects. It goes to the shard of the host that it visits. The
shard has it made by the agent that asks that host, in turn with other visits. An errand has a key of its own, so that
it is not taken for another visit to the same URL. Invariant: errands of this agent are sent again if the asked shard
begins a new life.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from fyke.archive.division import Division
from fyke.core.batches import Kind, keep, texts, u64, url_batch
from fyke.core.urls import key_of, locate
from fyke.core.visits import Exchange, Visit, robots_visit
from fyke.crawl.post import columns
from fyke.crawl.post.dealings import Mail
from fyke.crawl.post.events import Errand, ErrandAnswer
from fyke.crawl.post.mailbag import Mailbag
from fyke.crawl.post.routes import Routes


class Errands:
    """The errands of agent `me`, those to hosts of its shard, and those that it makes for others."""

    def __init__(self, me: int, division: Division, mailbag: Mailbag, routes: Routes) -> None:
        self._me = me
        self._division = division
        self._mailbag = mailbag
        self._routes = routes
        self._wanted: dict[int, Visit] = {}  # errands that others make for this agent, by key
        self._of_shard: dict[int, tuple[int, str, int]] = {}  # by key: errands to hosts of this shard, as in `columns`
        self._made: dict[int, int] = {}  # by key: errands made here, with the shard that sent each

    def __repr__(self) -> str:
        return f"Errands({len(self._wanted)} wanted, {len(self._of_shard)} of this shard, {len(self._made)} made here)"

    @property
    def wanted(self) -> bool:
        """True if this agent waits for any."""
        return bool(self._wanted)

    def want(self, visit: Visit) -> None:
        """Have `visit` made by the agent that asks its host."""
        self._wanted[_key(visit, self._me)] = visit
        if self._division.shard_of(visit.domain) == self._me:
            self.take(self._me, visit)
        else:
            self._send(visit)

    def _send(self, visit: Visit) -> None:
        self._mailbag.pass_on(self._division.shard_of(visit.domain), Mail.ERRAND, columns.errand_sealed(visit))

    def send_again(self, shard: int) -> None:
        """Send errands to `shard` again, because its new life knows nothing of them."""
        for visit in self._wanted.values():
            if self._division.shard_of(visit.domain) == shard:
                self._send(visit)

    def take(self, agent: int, visit: Visit) -> None:
        """Have `visit`, to a host of this shard, made for `agent`."""
        key = _key(visit, agent)
        if key not in self._of_shard:
            self._of_shard[key] = agent, visit.robots_of, visit.depth
            self._routes.wait(url_batch([locate(visit.url)._replace(key=key)], kind=Kind.RULES))

    def among(self, keys: Iterable[int]) -> columns.Errands:
        """Return the errands to hosts of this shard among the visits with these keys."""
        return {key: self._of_shard[key] for key in keys if key in self._of_shard} if self._of_shard else {}

    def make(self, shard: int, urls: pa.RecordBatch, errands: columns.Errands) -> list[Errand]:
        """Return the errands among `urls`, sent by `shard`, to be made here."""
        made = []
        for url, key in zip(texts(urls), u64(urls, "key").tolist(), strict=True) if errands else ():
            if key in errands and key not in self._made:
                self._made[key] = shard
                _, origin, redirects = errands[key]
                visit = robots_visit(url, origin, redirects)
                visit.errand = key
                made.append(Errand(visit))
        return made

    def drop(self, keys: Iterable[int]) -> None:
        """Forget the visits with these keys: they are not made here."""
        for key in keys:
            self._made.pop(key, None)

    def drop_shard(self, shard: int) -> None:
        """Forget the errands that `shard` sent: they are not made here."""
        self._made = {key: of for key, of in self._made.items() if of != shard}

    def answer(self, exchange: Exchange, now: float) -> list[ErrandAnswer]:
        """Pass on the `exchange` of an errand made here; return it if it is for this agent."""
        key = exchange.visit.errand
        shard = self._made.pop(key, None)
        body = columns.answer_sealed(key, exchange)
        if shard == self._me:
            return self.answered(body, now)
        if shard is not None:
            self._mailbag.pass_on(shard, Mail.ANSWER, body)
        return []

    def answered(self, body: bytes, now: float) -> list[ErrandAnswer]:
        """Take the answer to an errand; return it if this agent wanted it, otherwise pass it on."""
        key = columns.answered(body)
        errand = self._of_shard.pop(key, None)
        if errand is not None:
            self._routes.rules_over(key, now)
            if errand[0] != self._me:
                self._mailbag.pass_on(errand[0], Mail.ANSWER, body)
                return []
        exchange = columns.answer_opened(body, lambda key: self._wanted.pop(key, None))
        return [] if exchange is None else [ErrandAnswer(exchange)]


def without(urls: pa.RecordBatch, errands: Mapping[int, object]) -> pa.RecordBatch:
    """Return `urls` without the rows whose keys are those of `errands`."""
    return keep(urls, ~np.isin(u64(urls, "key"), np.array(list(errands), np.uint64))) if errands else urls


def _key(visit: Visit, agent: int) -> int:
    """Return the key of an errand of `agent`."""
    return key_of(f"{visit.url} {visit.robots_of} {visit.depth} {agent}")
