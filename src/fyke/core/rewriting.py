"""Applies the rules of `core/rewrite_rules` to URLs.

Called by the crawl for links (`fyke.crawl.rewriting`), by `fyke why`, and by `fyke.rewrite`. Pure.

Invariants: a rewritten URL is canonical; rewriting is idempotent; only a rule of the shape `host` changes the host, and
no rule changes the scheme or the port.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, takewhile
from operator import itemgetter
from typing import Any, NamedTuple

from fyke.core.errors import ConfigurationError
from fyke.core.rewrite_rules import Rule, Shape
from fyke.core.urls import canonical, key_of

_SCHEMES = ("http:", "https:")
MOST_CONTRADICTIONS = 3  # of one page; then URLs that rules would make into it stay as they are
MOST_MOVES = 16  # rules that change the host, one after the other


def exceptions(saved: Mapping[str, Any]) -> set[int]:
    """Return the keys of pages that are exceptions to the rules, in the checkpoint of a crawl's rewriting."""
    return {int(key) for key, count in saved.get("contradicted", {}).items() if count >= MOST_CONTRADICTIONS}


class Rewritten(NamedTuple):
    """A rewritten URL, and the rules that changed it: no rules if it stays as it is."""

    url: str
    rules: tuple[Rule, ...] = ()


class Rewriter:
    """`rules` in use, by host. Raises ConfigurationError if hosts lead to each other in a circle."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rule for rule in rules if rule.use)
        self._moves: dict[str, Rule] = {}
        self._of_host: dict[str, _RewritesOfHost] = {}
        for rule in self.rules:
            if rule.shape is Shape.HOST:
                self._moves.setdefault(rule.host, rule)
            else:
                self._of_host.setdefault(rule.host, _RewritesOfHost()).add(rule)
        for host in self._moves:
            self._path(host)

    def __repr__(self) -> str:
        return f"Rewriter({len(self.rules)} rules)"

    def __bool__(self) -> bool:
        return bool(self.rules)

    @property
    def hosts(self) -> dict[str, list[str]]:
        """The hosts of the rules, each with the hosts that it becomes in turn."""
        return {host: [rule.to for rule in self._path(host)] for host in self._moves.keys() | self._of_host.keys()}

    @property
    def host_keys(self) -> list[int]:
        """Keys of the hosts of the rules, sorted."""
        return sorted(map(key_of, self.hosts))

    def _path(self, host: str) -> list[Rule]:
        """Return the rules that lead from `host` on."""
        path: dict[str, Rule] = {}
        while (rule := self._moves.get(host)) is not None:
            if host in path or len(path) == MOST_MOVES:
                what = "lead in a circle" if host in path else f"lead through more than {MOST_MOVES} hosts"
                raise ConfigurationError(f"rewrite rules {what}: {' '.join(islice(path, 10))} … {host}")
            path[host] = rule
            host = rule.to
        return list(path.values())

    def rewrite(self, url: str) -> Rewritten:
        """Rewrite `url`, which is canonical."""
        scheme, _, authority, target = url.split("/", 3)
        if scheme not in _SCHEMES:
            return Rewritten(url)
        host, port = authority, ""
        if not authority.endswith("]"):
            name, colon, number = authority.rpartition(":")
            host, port = (name, f":{number}") if colon and number.isdigit() else (authority, "")
        used = self._path(host)
        host = used[-1].to if used else host
        rules = self._of_host.get(host)
        if rules is not None:
            target = rules.apply(target, used)
        made = f"{scheme}//{host}{port}/{target}"
        if made == url or canonical(made) != made:
            return Rewritten(url)
        return Rewritten(made, tuple(used))


class _RewritesOfHost:
    """The rules of one host, by shape."""

    def __init__(self) -> None:
        self._keys: dict[str, list[Rule]] = {}
        self._sorts: Rule | None = None
        self._indexes: dict[str, Rule] = {}
        self._parameters: dict[str, Rule] = {}
        self._segments: list[Rule] = []

    def add(self, rule: Rule) -> None:
        if rule.shape is Shape.DROP_KEY:
            self._keys.setdefault(rule.key, []).append(rule)
        elif rule.shape is Shape.SORT_KEYS:
            self._sorts = rule
        elif rule.shape is Shape.INDEX_PAGE:
            self._indexes[rule.key] = rule
        elif rule.shape is Shape.DROP_PARAMETER:
            self._parameters[rule.key] = rule
        else:
            self._segments.append(rule)

    def apply(self, target: str, used: list[Rule]) -> str:
        """Rewrite `target`, path and query without the first slash; add the rules that changed it to `used`."""
        path, mark, query = target.partition("?")
        if self._parameters or self._segments:
            path = self._path(path, used)
        if mark and (self._keys or self._sorts is not None):
            query = self._query(path, query, used)
        if self._indexes and not query:  # a query may choose what an index page shows
            path = self._folder(path, used)
        return f"{path}?{query}" if query else path

    def _path(self, path: str, used: list[Rule]) -> str:
        segments = path.split("/")
        if self._parameters:
            segments = [self._without_parameters(segment, used) for segment in segments]
        while (found := self._token(segments)) is not None and len(segments) > 1:
            place = found.place % len(segments)
            end = place + 1
            if len(self._segments) == 1 and place == found.place:  # it drops a run at once: there may be hundreds
                run = takewhile(lambda segment: is_token(segment, found), islice(segments, end, None))
                end += min(sum(1 for _ in run), len(segments) - 2)
            del segments[place:end]
            _note(found, used)
        return "/".join(segments)

    def _folder(self, path: str, used: list[Rule]) -> str:
        folder, slash, name = path.rpartition("/")
        index = self._indexes.get(name)
        if index is None:
            return path
        _note(index, used)
        return folder + slash

    def _without_parameters(self, segment: str, used: list[Rule]) -> str:
        if ";" not in segment:
            return segment
        kept = []
        for number, part in enumerate(segment.split(";")):
            rule = self._parameters.get(part.partition("=")[0]) if number else None
            if rule is None:
                kept.append(part)
            else:
                _note(rule, used)
        return ";".join(kept)

    def _token(self, segments: Sequence[str]) -> Rule | None:
        """Return the first rule that drops one of `segments`."""
        for rule in self._segments:
            if -len(segments) <= rule.place < len(segments) and is_token(segments[rule.place], rule):
                return rule
        return None

    def _query(self, path: str, query: str, used: list[Rule]) -> str:
        kept = []
        pairs = query.split("&")
        for pair in pairs:
            key, _, value = pair.partition("=")
            rules = self._keys.get(key, ())
            rule = next((one for one in rules if one.value in (None, value) and one.path in ("", path)), None)
            if rule is None:
                kept.append((key, pair))
            else:
                _note(rule, used)
        if self._sorts is not None:
            in_order = sorted(kept, key=itemgetter(0))
            if in_order != kept:
                _note(self._sorts, used)
                kept = in_order
        return "&".join(pair for _, pair in kept)


def _note(rule: Rule, used: list[Rule]) -> None:
    if not any(one is rule for one in used):
        used.append(rule)


def is_token(segment: str, rule: Rule) -> bool:
    """Return whether `rule`, of the shape `drop-segment`, drops `segment` of a path."""
    if rule.key:
        return segment == rule.key
    if not (segment.startswith(rule.prefix) and segment.endswith(rule.suffix)):
        return False
    token = segment[len(rule.prefix) : len(segment) - len(rule.suffix)]
    return rule.length[0] <= len(token) <= rule.length[1] and token.isalnum() and any(map(str.isdigit, token))
