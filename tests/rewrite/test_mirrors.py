"""Hosts that are copies of others are found, and those that share some pages are not."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fyke.core.rewrite_rules import Rule
from fyke.core.urls import key_of
from fyke.rewrite.fetched import AnsweredPage
from fyke.rewrite.mirrors import FIRST, MOST_PATHS_READ, Ranking, mirrors

SOME = {f"p{n}": n + 1 for n in range(40)}


def parts(hosts: dict[str, dict[str, int]], count: int = 3) -> list[dict[str, dict[str, AnsweredPage]]]:
    """Pages by host, by path, in parts."""
    found: list[dict[str, dict[str, AnsweredPage]]] = [{} for _ in range(count)]
    for host, contents in hosts.items():
        for target, content in contents.items():
            page = AnsweredPage(f"http://{host}/{target}", host, content, {})
            found[len(target) * 7 % count].setdefault(target, {})[host] = page
    return found


def rules_of(
    hosts: dict[str, dict[str, int]], said: dict[str, int], read: list[str], ranked: Ranking = sorted
) -> list[Rule]:
    """Rules where fingerprints are contents, and URLs say what is `said` of them, or what no other says; `read` is
    told of each that is asked for."""

    def said_by(page: AnsweredPage) -> int:
        read.append(page.url)
        return said.get(page.url, key_of(page.url))

    rules = mirrors(lambda: parts(hosts), said_by, ranked)
    assert not any(rule.use for rule in rules), "they are off until a person says otherwise"
    return rules


def pairs(hosts: dict[str, dict[str, int]]) -> set[tuple[str, str]]:
    return {(rule.host, rule.to) for rule in rules_of(hosts, {}, [])}


def test_a_copy_is_found() -> None:
    assert pairs({"a.test": SOME, "b.test": SOME, "c.test": {}}) == {("b.test", "a.test")}
    assert not pairs({"a.test": SOME, "www.a.test": SOME}), "they are one site"


def test_parked_hosts_are_no_copies() -> None:
    """All say the same whatever is asked."""
    assert not pairs({f"parked{n}.test": dict.fromkeys(SOME, 7) for n in range(5)})


@given(st.integers(0, 40))
def test_nine_in_ten_paths_agree(different: int) -> None:
    other = {target: content + 100 * (n < different) for n, (target, content) in enumerate(SOME.items())}
    assert bool(pairs({"a.test": SOME, "b.test": other})) == (different <= 4)


@given(st.integers(0, 20))
def test_ten_contents_are_enough(count: int) -> None:
    few = dict(list(SOME.items())[:count])
    assert bool(pairs({"a.test": SOME, "b.test": few})) == (count >= 10)


@given(st.sets(st.integers(0, 9), min_size=2))
def test_rules_lead_to_a_host_that_none_leads_from(copies: set[int]) -> None:
    found = pairs({f"h{n}.test": SOME for n in copies})
    assert {other for _, other in found} == {f"h{min(copies)}.test"}
    assert len(found) == len(copies) - 1


@given(st.permutations([f"h{n}.test" for n in range(6)]), st.integers(1, 6))
def test_rules_lead_to_the_copy_that_ranks_first(order: list[str], groups: int) -> None:
    """Of each group of copies, whatever the alphabet says."""
    hosts = {f"h{n}.test": {target: content + 100 * (n % groups) for target, content in SOME.items()} for n in range(6)}
    found = rules_of(hosts, {}, [], lambda met: sorted(met, key=order.index))
    copies = {host: [other for other in order if hosts[other] == hosts[host]] for host in hosts}
    assert {rule.host: rule.to for rule in found} == {host: of[0] for host, of in copies.items() if of[0] != host}
    for rule in found:
        path = rule.example[0].removeprefix(f"http://{rule.host}/")
        assert path in SOME and rule.example[1] == f"http://{rule.to}/{path}"


def beside(hosts: dict[str, dict[str, int]], many: int = 40) -> dict[str, dict[str, int]]:
    """`hosts`, and many whose pages are at the same paths and say other things, but for one that all have."""
    targets = sorted({target for contents in hosts.values() for target in contents})
    others = {
        f"other{n}.test": {target: key_of(f"{n} {target}") for target in targets} | {targets[0]: 7} for n in range(many)
    }
    return others | {host: contents | {targets[0]: 7} for host, contents in hosts.items()}


@given(st.integers(0, 12))
@settings(max_examples=20)
def test_a_copy_is_found_where_all_hosts_have_the_same_paths(different: int) -> None:
    other = {target: content + 100 * (n in range(1, different + 1)) for n, (target, content) in enumerate(SOME.items())}
    assert bool(pairs(beside({"a.test": SOME, "b.test": other}))) == (different <= 3)


def test_so_is_one_whose_bytes_differ() -> None:
    hosts, said = tokens(40, 0)
    read: list[str] = []
    (rule,) = rules_of(beside(hosts), said, read)
    assert (rule.host, rule.to, rule.contradictions) == ("b.test", "a.test", 0)
    assert len(read) <= FIRST * 42 + 2 * 40


def tokens(paths: int, different: int) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """Two hosts with so many paths, all with other bytes at each, and what each of their pages says."""
    hosts = {host: {f"p{n}": key_of(f"{host} {n}") for n in range(paths)} for host in ("a.test", "b.test")}
    said = {f"http://{host}/p{n}": n + 1 for host in hosts for n in range(paths) if n % 97 * paths >= 97 * different}
    return hosts, said


@given(st.integers(10, 400))
@settings(max_examples=20)
def test_a_copy_whose_bytes_differ_is_found_by_what_it_says(paths: int) -> None:
    hosts, said = tokens(paths, 0)
    read: list[str] = []
    (rule,) = rules_of(hosts, said, read)
    assert (rule.host, rule.to, rule.support, rule.contradictions) == ("b.test", "a.test", paths, 0)
    assert len(read) == len(set(read)) == 2 * min(paths, MOST_PATHS_READ)


@given(st.integers(10, 400))
@settings(max_examples=20)
def test_hosts_that_say_other_things_are_left_soon(paths: int) -> None:
    hosts, _ = tokens(paths, paths)
    read: list[str] = []
    assert not rules_of(hosts, {}, read)
    assert len(read) <= 2 * (1 + min(paths, MOST_PATHS_READ) // 10)
    hosts, said = tokens(paths, paths // 3 + 1)
    assert not rules_of(hosts, said, [])
