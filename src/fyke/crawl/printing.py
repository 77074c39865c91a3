"""What pages say that rewrite rules speak of: read by the agent that fetched them, for the shards that try the rules.

`gathering` asks it for each page; `rewriting` is told. Invariant: a shard that may try a rule hears of both its pages.
"""

from collections.abc import Iterable

import pyarrow as pa

from fyke.core.messages import OK, PRINTED, code_of
from fyke.core.outcomes import Outcome
from fyke.core.pages import Page
from fyke.core.rewrite_rules import Rule
from fyke.core.rewriting import Rewriter
from fyke.core.urls import key_of, locate
from fyke.core.visits import Visit
from fyke.harvest.containment import held_by
from fyke.harvest.prints import number_of, prints_of


class Printing:
    """Reads pages of hosts that `rules` speak of."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rewriter = Rewriter(rules)
        self._views = {key_of(host) for rule in self._rewriter.rules if rule.view for host in (rule.host, rule.to)}
        self._told: dict[int, dict[int, None]] = {}  # by host: domains whose URLs lead there
        for host, becomes in self._rewriter.hosts.items():
            for each in (host, *becomes):
                self._told.setdefault(key_of(each), {})[locate(f"http://{host}/").domain] = None

    def __repr__(self) -> str:
        return f"Printing({self._rewriter!r})"

    def of(self, visit: Visit, outcome: Outcome, page: Page) -> pa.RecordBatch | None:
        """Return what to tell of `page`, with which `visit` ended (schema `PRINTED`, a row for each domain to be told);
        None if nothing."""
        domains = list(self._told.get(visit.host, ()))
        if not domains:
            return None
        code, content, prints, held = code_of(outcome), 0, list[int](), list[int]()
        if code == OK and page.fingerprint:
            content = number_of(page.content, page.media_type)
            if self._rewriter.rewrite(visit.url).rules:
                prints = [page.fingerprint, *prints_of(page.content, page.media_type, visit.url)]
            if visit.host in self._views:
                held = held_by(page.content, page.media_type, visit.url, self._rewritten).tolist()
        rows = (
            [visit.key] * len(domains),
            domains,
            *([value] * len(domains) for value in (code, content, prints, held)),
        )
        arrays = [pa.array(column, field.type) for column, field in zip(rows, PRINTED, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=PRINTED)

    def _rewritten(self, url: str) -> str:
        return self._rewriter.rewrite(url).url
