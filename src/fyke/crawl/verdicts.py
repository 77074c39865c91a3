"""What trials say of rewrite rules: a sequential test of each, so that a page that changed by itself revokes no rule.

At sites whose pages change at every request, a rule that holds is contradicted now and then. One contradiction only
makes a rule suspect, and begins more trials of it; it is revoked when contradictions outweigh agreements. By Wald,
"Sequential tests of statistical hypotheses", Annals of Mathematical Statistics 16 (1945), each trial adds the logarithm
of its likelihood if a share `BAD_RULE_SHARE` contradicts, over that if a share `GOOD_RULE_SHARE` does. The sum never
falls below zero (Page, "Continuous inspection schemes", Biometrika 41, 1954). So a rule that held for long and no
longer does is found as soon as one that never held. A rule that holds and becomes suspect is revoked in a few of a
hundred cases. A rule that is always contradicted is revoked after three trials.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import log
from typing import Any

FIRST_TRIALS = 2  # of a rule
AT_ONCE = 24  # of a suspect rule: enough agreements to clear it of one contradiction, and a few more
GOOD_RULE_SHARE = 0.02  # share of trials that contradict a rule that holds
BAD_RULE_SHARE = 0.1  # the same of a rule that does not hold
FALSE_ALARM = 0.01
_AGAINST, _FOR = log(BAD_RULE_SHARE / GOOD_RULE_SHARE), log((1 - BAD_RULE_SHARE) / (1 - GOOD_RULE_SHARE))
_REVOKED = log(1 / FALSE_ALARM)


class Verdicts:
    """For each rule, by name: trials begun, agreed, contradicted, and how suspect it is."""

    def __init__(self, saved: Mapping[str, Mapping[str, int]], suspicion: Mapping[str, float]) -> None:
        self.counts = {name: Counter(counts) for name, counts in saved.items()}
        self.suspicion = dict(suspicion)
        self.pending: Counter[str] = Counter()  # trials under way

    def __repr__(self) -> str:
        return f"Verdicts({len(self.counts)} rules, {len(self.suspicion)} suspect)"

    def of(self, name: str) -> Counter[str]:
        """Return the trials of a rule: begun, agreed, contradicted."""
        return self.counts.setdefault(name, Counter())

    def wants_trial(self, name: str) -> bool:
        """Return whether the next URL that the rule changes is to be tried."""
        few = self.of(name)["begun"] < FIRST_TRIALS
        return few or (name in self.suspicion and self.pending[name] < AT_ONCE)

    def count(self, names: Iterable[str], *, agreed: bool) -> list[str]:
        """Count the end of a trial of these rules; return the rules that are to be revoked."""
        found = []
        for name in names:
            self.of(name)["agreed" if agreed else "contradicted"] += 1
            sum_ = self.suspicion.pop(name, 0.0) + (_FOR if agreed else _AGAINST)
            if sum_ > 0:
                self.suspicion[name] = sum_
            if sum_ >= _REVOKED:
                found.append(name)
        least = min((self.of(name)["agreed"] for name in found), default=0)
        return [name for name in found if self.of(name)["agreed"] == least]  # the others may be innocent

    def acquit(self, names: Iterable[str]) -> None:
        """Clear these rules of suspicion, because others were at fault."""
        for name in names:
            self.suspicion.pop(name, None)

    def in_want(self) -> set[str]:
        """Return the rules that are suspect and have no trial under way."""
        return {name for name in self.suspicion if not self.pending[name]}

    def state(self) -> dict[str, Any]:
        """Return everything a restart needs, except for pending trials."""
        return {"verdicts": {name: dict(counts) for name, counts in self.counts.items()}, "suspicion": self.suspicion}
