"""However many pages break off, few beginnings are held, and each is given once or let go."""

from random import Random

import pytest

from fyke.core.document import Document, SharedMemory
from fyke.core.outcomes import Outcome
from fyke.core.visits import Exchange, visit_to
from fyke.fetcher.beginnings import HELD_BYTES, MOST_HELD, Beginnings

ENDS = [Outcome.CONNECT_FAILED, Outcome.HOST_RETIRED, Outcome.OK, Outcome.CLIENT_ERROR, Outcome.ROBOTS_FORBADE]


@pytest.mark.parametrize("most_bytes", [10, HELD_BYTES // 40, 2 * HELD_BYTES])
def test_few_are_held_and_none_is_forgotten(most_bytes: int) -> None:
    dice, beginnings, memory = Random(most_bytes), Beginnings(), SharedMemory(1 << 40)
    free = memory.left_bytes
    visits = [visit_to(f"http://h.example/{number}") for number in range(3 * MOST_HELD)]
    for _ in range(1500):
        visit = dice.choice(visits)
        body = Document(memory_bytes=1 << 40, shared=memory)
        if dice.random() < 0.7:
            visit.tries += 1
            body.write(bytes(dice.randrange(1, most_bytes)))
            beginnings.hold(
                Exchange(visit, Outcome.BROKEN_OFF, 0.0, 0.0, status=200, head=b"x", body=body, truncated="disconnect")
            )
        else:
            last = Exchange(visit, dice.choice(ENDS), 0.0, 0.0)
            found = beginnings.instead_of(last)
            if found is not last:
                assert last.outcome in ENDS[:2]
                assert (found.outcome, found.visit.tries) == (Outcome.INCOMPLETE, visit.tries)
            assert beginnings.instead_of(last) is last
            found.body.close()
            visit.tries = 0
        assert free - memory.left_bytes <= HELD_BYTES
        assert int(repr(beginnings).partition("(")[2].split()[0]) <= MOST_HELD
    for visit in visits:
        beginnings.instead_of(Exchange(visit, Outcome.OK, 0.0, 0.0))
    assert memory.left_bytes == free and "(0 held, 0 bytes)" in repr(beginnings)


def test_the_beginning_of_an_earlier_visit_is_none_of_this_one() -> None:
    beginnings, visit = Beginnings(), visit_to("http://h.example/")
    visit.tries = 1
    body = Document(b"begin")
    beginnings.hold(
        Exchange(visit, Outcome.BROKEN_OFF, 0.0, 0.0, status=200, head=b"x", body=body, truncated="disconnect")
    )
    again = Exchange(visit_to("http://h.example/"), Outcome.CONNECT_FAILED, 0.0, 0.0)
    assert beginnings.instead_of(again) is again and not body.read()
