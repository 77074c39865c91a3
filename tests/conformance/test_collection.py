"""The Cranfield collection, as it is and as JSON: what `tests/search/test_relevance.py` is judged by is read right."""

import json
from typing import Any

from relevance import GAINS, read

from conformance.oracles import ORACLES


def rows(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((ORACLES / "ir-cranfield" / name).read_text())
    return found


def words(text: str) -> list[str]:
    return text.split()


def test_the_collection_is_read_as_others_read_it() -> None:
    ours = read(ORACLES / "cranfield")
    theirs = {row["id"]: (words(row["title"]), words(row["body"])) for row in rows("documents.json")}
    assert {id: (words(one["T"]), words(one["W"])) for id, one in ours.documents.items()} == theirs
    assert {place: words(text) for place, text in ours.queries.items()} == {
        row["number"]: words(row["text"]) for row in rows("queries.json")
    }
    judged: dict[int, dict[int, int]] = {query: {} for query in ours.queries}
    for row in rows("judgements.json"):
        if row["grade"] in GAINS:
            judged[row["query"]][row["doc"]] = GAINS[row["grade"]]
    assert ours.judged == judged
