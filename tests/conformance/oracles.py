"""Test sets that others made, read where they are: in `$FYKE_ORACLES`, else in `shared/oracles` beside the checkout.

Each folder there has a `SOURCE.txt` that says where it is from and what it is about. Nothing of it is copied here.
"""

import os
from collections.abc import Mapping
from pathlib import Path

ORACLES = Path(os.environ.get("FYKE_ORACLES") or Path(__file__).parents[3] / "shared" / "oracles")


def judge(problems: Mapping[str, str], policy: Mapping[str, str] | None = None) -> None:
    """Fails unless the cases with a problem are those of `policy`, by name; `problems` has `""` where there is none.

    So a listed case that passes now fails too: the list stays true.
    """
    assert problems, "the set is empty"
    policy = policy or {}
    wrong = {name for name, problem in problems.items() if problem}
    bugs = [f"{name}: {problems[name]}" for name in problems if name in wrong and name not in policy]
    stale = [f"{name}: passes, but is listed: {policy[name]}" for name in policy if name in problems.keys() - wrong]
    unknown = [f"{name}: listed, but there is no such case" for name in policy if name not in problems]
    told = bugs + stale + unknown
    assert not told, f"{len(bugs)} of {len(problems)} cases fail:\n" + "\n".join(told[:200])
