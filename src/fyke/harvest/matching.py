"""The nodes that selectors select in a page, found in time that grows no faster than the page.

`fields` asks. Lexbor tries all ways in which ancestors and siblings may stand for the parts of a selector, and holds
the interpreter meanwhile: for `#content div div a` on a page of 15 KB, eight seconds. So it is asked only for compounds
(`selectors`). This module finds how elements lie to each other, with sets of elements and remembered answers: it looks
at none twice for the same question.

Invariant: the result is lexbor's, in the same order and as often (once for each part of a list that selects an
element), unless the page's allowance is used up: then the rest is missing.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter

from selectolax.lexbor import LexborNode

from fyke.harvest.selectors import Disabled, Has, Nth, Selector, Test, Way

LOOKS = 500  # at nodes, counted together

_UP, _BACK = attrgetter("parent"), attrgetter("prev")
_FORM = ("button", "input", "select", "textarea")
_KNOWN_TAGS = 4096  # lexbor numbers an unknown tag by an address

Check = Callable[[LexborNode], bool]
Step = Callable[[LexborNode], LexborNode | None]


class _Spent(Exception):
    """The allowance for looking at the page is used up."""


class Matcher:
    """The nodes that selectors select in the page of `root`. `look` is told a number of looks, and says if more may
    follow."""

    def __init__(self, root: LexborNode, look: Callable[[int], bool]) -> None:
        self._root = root
        self._look = look
        self._looks = 0  # not told yet
        # By the text of a way and a number of its compounds: what these select; what nodes of the next must pass.
        self._ids: dict[tuple[str, int], Collection[int]] = {}
        self._checks: dict[tuple[str, int], Sequence[Check]] = {}

    def __repr__(self) -> str:
        return f"Matcher({len(self._ids)} sets)"

    def close(self) -> None:
        """Let go of the page, which only a circle of references keeps."""
        self._checks.clear()

    def find(self, selector: Selector, place: LexborNode) -> Iterator[LexborNode]:
        """Yield what `selector` selects in `place`, `place` itself included."""
        return iter(place.css(selector.text)) if selector.plain else self._find(selector, place)

    def nested(self, places: Sequence[LexborNode]) -> Iterator[bool]:
        """Yield for each of `places` whether it lies in another one; end early if the allowance is used up."""
        known = dict.fromkeys((place.mem_id for place in places), True)
        try:
            for place in places:
                yield self._follows(known, _UP, place)
        except _Spent:
            return

    def _find(self, selector: Selector, place: LexborNode) -> Iterator[LexborNode]:
        try:
            ways = [
                way for way in selector.ways if len(way.compounds) == 1 or self._ids_of(way, len(way.compounds) - 1)
            ]
            if not ways:
                return
            found = place.css(selector.last)
            self._count(len(found))
            yield from self._kept(found, ways[0], -1) if len(selector.ways) == 1 else self._kept_of_list(found, ways)
        except _Spent:
            return

    def _count(self, looks: int) -> None:
        self._looks += looks
        if self._looks >= LOOKS:
            looks, self._looks = self._looks, 0
            if not self._look(looks):
                raise _Spent

    def _all(self, plain: str) -> list[LexborNode]:
        found = self._root.css(plain)
        self._count(len(found))
        return found

    def _ids_of(self, way: Way, size: int) -> Collection[int]:
        """Return the ids of the page's elements that the first `size` compounds of `way` select."""
        ids: Collection[int] = ()
        for at in range(size):
            known = self._ids.get((way.text, at + 1))
            if known is None:
                found = self._all(way.compounds[at].plain) if ids or at == 0 else []
                known = {node.mem_id for node in self._kept(found, way, at)}
                self._ids[way.text, at + 1] = known
            ids = known
        return ids

    def _kept(self, nodes: Iterable[LexborNode], way: Way, at: int) -> Iterable[LexborNode]:
        """Return the `nodes`, found by lexbor for compound `at`, that pass its tests and fit the compound before."""
        for check in self._checks_of(way, at % len(way.compounds)):
            nodes = filter(check, nodes)
        return nodes

    def _kept_of_list(self, nodes: Iterable[LexborNode], ways: Sequence[Way]) -> Iterator[LexborNode]:
        """Do the same for a list, and yield each node once for each way to it."""
        before = 0
        for node in nodes:
            if node.mem_id != before:  # lexbor gives a node once for each last compound that it has
                before = node.mem_id
                for way in ways:
                    last = len(way.compounds) - 1
                    if before in self._plain_ids(way.compounds[last].plain) and all(
                        check(node) for check in self._checks_of(way, last)
                    ):
                        yield node

    def _plain_ids(self, plain: str) -> Collection[int]:
        ids = self._ids.get((plain, 0))
        if ids is None:
            ids = self._ids[plain, 0] = {node.mem_id for node in self._all(plain)}
        return ids

    def _checks_of(self, way: Way, at: int) -> Sequence[Check]:
        checks = self._checks.get((way.text, at))
        if checks is None:
            checks = [self._combinator_check(self._ids_of(way, at), way.compounds[at].combinator)] if at else []
            checks += map(self._test_check, way.compounds[at].tests)
            self._checks[way.text, at] = checks
        return checks

    def _combinator_check(self, ids: Collection[int], combinator: str) -> Check:
        """Return the check whether a node lies by `combinator` to one of `ids`."""
        if combinator == ">":
            return lambda node: (parent := node.parent) is not None and parent.mem_id in ids
        if combinator == "+":
            return lambda node: (before := self._before(node)) is not None and before.mem_id in ids
        return partial(self._follows, dict.fromkeys(ids, True), _UP if combinator == " " else _BACK)

    def _follows(self, known: dict[int, bool], step: Step, node: LexborNode) -> bool:
        """Return whether any node that `step` reaches from `node` is `known` as true. Answers for passed nodes become
        known."""
        passed: list[int] = []
        up, found = step(node), False
        while up is not None:
            of = up.mem_id
            said = known.get(of)
            if said is not None:
                found = said
                break
            passed.append(of)
            up = step(up)
        if passed:
            known.update(dict.fromkeys(passed, found))
            self._count(len(passed))
        return found

    def _before(self, node: LexborNode) -> LexborNode | None:
        """Return the element before `node`."""
        before = node.prev
        while before is not None and not before.is_element_node:
            self._count(1)
            before = before.prev
        return before

    # -- tests ---------------------------------------------------------------------------------------------

    def _test_check(self, test: Test) -> Check:
        """Return the check whether a node passes `test`."""
        if isinstance(test, Nth):
            places: dict[int, int] = {}
            return lambda node: test.holds(self._place(node, test, places))
        if isinstance(test, Has):
            having = {of for way in test.ways for of in self._holders(way)}
            return lambda node: node.mem_id in having
        if isinstance(test, Disabled):
            named = {node.mem_id for node in self._all("[disabled]")}
            sets = [node for node in self._all("fieldset") if node.first_child and node.first_child.tag != "legend"]
            within = partial(self._follows, dict.fromkeys((node.mem_id for node in sets), True), _UP)
            return lambda node: (
                (node.mem_id in named and (node.tag in _FORM or node.tag_id > _KNOWN_TAGS or within(node)))
                is test.wanted
            )
        return lambda node: self._selects(test.selector, node) is test.wanted

    def _selects(self, selector: Selector, node: LexborNode) -> bool:
        return any(node.mem_id in self._ids_of(way, len(way.compounds)) for way in selector.ways)

    def _place(self, node: LexborNode, nth: Nth, places: dict[int, int]) -> int:
        """Return the number of `node` among its siblings, as `nth` counts them, 0 if not counted; `places` are known
        numbers."""
        of = node.mem_id
        if of not in places:
            counts: Counter[str | None] = Counter()
            siblings = self._siblings(node)
            for one in reversed(siblings) if nth.last else siblings:
                kind = one.tag if nth.typed else None
                counted = nth.of is None or self._selects(nth.of, one)
                counts[kind] += counted
                places[one.mem_id] = counts[kind] if counted else 0
        return places[of]

    def _siblings(self, node: LexborNode) -> list[LexborNode]:
        """Return `node` and its siblings without texts and comments, which is what lexbor counts."""
        parent = node.parent
        found = [one for one in parent.iter() if one.is_element_node or not one.is_comment_node] if parent else [node]
        self._count(len(found))
        return found

    def _holders(self, way: Way) -> Collection[int]:
        """Return the ids of elements for which `:has(way)` holds."""
        holders: Collection[int] | None = None
        for compound in reversed(way.compounds):
            checks = [*map(self._test_check, compound.tests)]
            nodes = [
                node
                for node in self._all(compound.plain)
                if (holders is None or node.mem_id in holders) and all(check(node) for check in checks)
            ]
            holders = self._held_by(nodes, compound.combinator)
        return holders or ()

    def _held_by(self, nodes: Sequence[LexborNode], combinator: str) -> Collection[int]:
        """Return the ids of elements to which some of `nodes` lie by `combinator`."""
        if combinator == ">":
            return {parent.mem_id for node in nodes if (parent := node.parent) is not None}
        if combinator == "+":
            return {before.mem_id for node in nodes if (before := self._before(node)) is not None}
        step = _BACK if combinator == "~" else _UP
        found: set[int] = set()
        for node in nodes:
            up = step(node)
            while up is not None and up.mem_id not in found:
                found.add(up.mem_id)
                self._count(1)
                up = step(up)
        return found
