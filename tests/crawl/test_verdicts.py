"""A rule that holds outlives pages that change; one that does not is found, however long it held before."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from fyke.crawl.verdicts import AT_ONCE, BAD_RULE_SHARE, FIRST_TRIALS, GOOD_RULE_SHARE, Verdicts


def revoked_after(verdicts: Verdicts, share: float, dice: Random, most: int) -> int:
    """Trials until the rule `r` is revoked, of which so many contradict; `most` where it is not."""
    for number in range(1, most):
        if verdicts.count(["r"], agreed=dice.random() >= share):
            return number
    return most


def test_what_is_always_contradicted_is_revoked_at_once() -> None:
    assert revoked_after(Verdicts({}, {}), 1.0, Random(0), 100) == 3


def test_one_contradiction_revokes_nothing_and_is_cleared() -> None:
    verdicts = Verdicts({}, {})
    assert not verdicts.count(["r"], agreed=False) and verdicts.wants_trial("r") and verdicts.in_want() == {"r"}
    for _ in range(AT_ONCE):
        assert not verdicts.count(["r"], agreed=True)
    verdicts.of("r")["begun"] = FIRST_TRIALS
    assert not verdicts.suspicion and not verdicts.wants_trial("r")


def test_the_errors_are_bounded() -> None:
    """2,000 seeded histories: of a site where one page in 250 changes by itself, and of rules that are wrong."""
    kept = [revoked_after(Verdicts({}, {}), 0.004, Random(seed), 1000) for seed in range(500)]
    assert sum(number < 1000 for number in kept) <= 5
    borne = [revoked_after(Verdicts({}, {}), GOOD_RULE_SHARE, Random(seed), 200) for seed in range(500)]
    assert sum(number < 200 for number in borne) <= 100
    for share in (2 * BAD_RULE_SHARE, 0.5):
        wrong = [revoked_after(Verdicts({}, {}), share, Random(seed), 1000) for seed in range(500)]
        assert max(wrong) < 200 and sum(wrong) / len(wrong) < 10 / share


@given(st.integers(0, 10**4))
def test_a_long_record_protects_no_rule_that_rots(agreements: int) -> None:
    verdicts = Verdicts({"r": {"agreed": agreements}}, {})
    assert revoked_after(verdicts, 1.0, Random(1), 100) == 3


def test_of_rules_tried_together_the_one_that_agreed_elsewhere_is_innocent() -> None:
    verdicts = Verdicts({}, {})
    for _ in range(5):
        verdicts.count(["good"], agreed=True)
    found = [verdicts.count(["good", "bad"], agreed=False) for _ in range(3)]
    assert found == [[], [], ["bad"]]
    verdicts.acquit(["good", "bad"])
    assert not verdicts.suspicion
