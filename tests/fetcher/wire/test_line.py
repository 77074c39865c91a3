"""The law of the line: large certificates wait for each other, and nobody waits for them."""

import pytest

from fyke.core.visits import visit_to
from fyke.fetcher.wire.line import ALONE_S, MOST_ALONE, QUICK_STARTS, STARTS, WaitingLine
from fyke.fetcher.wire.request import Request
from fyke.fetcher.wire.transfer import MOST_NOTED, Calls, Slot


def slot(number: int = 0, *, alone: bool = False, scheme: str = "https") -> Slot:
    made = Slot([], 1, None, Calls(), alone=alone)
    made.request = Request(visit_to(f"{scheme}://h{number}.test/"), "127.0.0.1", None)
    return made


def test_few_that_are_alone_are_under_way_and_all_come_to_their_turn_in_order():
    line = WaitingLine()
    slots = [slot(number, alone=True) for number in range(3 * MOST_ALONE)]
    for one in slots:
        line.join(one)
    came = []
    while line.may_begin:
        given = []
        while (one := line.next(0.0)) is not None:
            given.append(one)
        assert len(given) == MOST_ALONE
        for one in given:
            line.ended(one)
        came += given
    assert came == slots and not len(line)


def test_others_wait_for_none_of_them():
    line = WaitingLine()
    for number in range(2 * MOST_ALONE):
        line.join(slot(number, alone=True))
    while line.next(0.0) is not None:
        pass
    assert not line.may_begin
    ordinary = slot(100)
    line.join(ordinary)
    assert line.may_begin and line.next(0.0) is ordinary


def test_what_needs_no_handshake_does_not_wait_for_those_that_do_nor_these_for_it():
    line = WaitingLine()
    new = [slot(number) for number in range(3 * STARTS)]
    met = [slot(number) for number in range(1000, 1000 + QUICK_STARTS)]
    plain = [slot(number, scheme="http") for number in range(QUICK_STARTS)]
    for one in met:
        line.note_answered(one.request.visit.host)
    for one in (*new, *met, *plain):
        line.join(one)
    turns = []
    while line.may_begin:
        turns.append(list(line.turn(0.0)))
    assert turns[0] == met + new[:STARTS]
    assert turns[1] == plain + new[STARTS : 2 * STARTS]
    assert turns[2] == new[2 * STARTS :] and len(turns) == 3


@pytest.mark.parametrize("waiting", [0, 1])
def test_who_takes_long_is_overdue_once_others_wait(waiting):
    line = WaitingLine()
    slots = [slot(number, alone=True) for number in range(MOST_ALONE + waiting)]
    for one in slots:
        line.join(one)
    for began in range(MOST_ALONE):
        line.next(float(began))
    assert line.overdue(ALONE_S + 1.5) == (slots[:2] if waiting else [])


def test_one_that_leaves_is_given_to_nobody():
    line = WaitingLine()
    slots = [slot(number, alone=number % 2 == 1) for number in range(4)]
    for one in slots:
        line.join(one)
    for one in slots[1:3]:
        assert line.leave(one.request.visit) is one
        assert line.leave(one.request.visit) is None
    assert {line.next(0.0), line.next(0.0)} == {slots[0], slots[3]} and not len(line)


def test_as_many_hosts_are_noted_as_there_may_be():
    line = WaitingLine()
    for host in range(MOST_NOTED + 5):
        line.note_large(host)
        line.note_answered(host)
        assert line.is_large(host)
    assert sum(map(line.is_large, range(MOST_NOTED + 5))) <= MOST_NOTED
    assert len(line._answered) <= MOST_NOTED
