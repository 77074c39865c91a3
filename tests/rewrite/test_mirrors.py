"""Hosts that are copies of others are found, and those that share some pages are not."""

from hypothesis import given
from hypothesis import strategies as st

from fyke.rewrite.mirrors import mirrors

SOME = {f"p{n}": n + 1 for n in range(40)}


def parts(hosts: dict[str, dict[str, int]], count: int = 3) -> list[dict[str, dict[str, int]]]:
    """Contents by host, by path, in parts."""
    found: list[dict[str, dict[str, int]]] = [{} for _ in range(count)]
    for host, contents in hosts.items():
        for target, content in contents.items():
            found[len(target) * 7 % count].setdefault(target, {})[host] = content
    return found


def pairs(hosts: dict[str, dict[str, int]]) -> set[tuple[str, str]]:
    rules = mirrors(parts(hosts))
    assert not any(rule.use for rule in rules), "they are off until a person says otherwise"
    return {(rule.host, rule.to) for rule in rules}


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
