"""DNS messages, to and from a name server (RFC 1035, section 4), as far as addresses need them.

Called by `fyke.fetcher.dns_query` only. Decides without I/O.

Invariants: whatever the bytes, `read` returns a `DnsAnswer` or raises `Malformed`. Only addresses of the name that was
asked for are believed, or of the name at the end of its chain of aliases in the same answer. Bounded: `read` looks at
most at `MOST_RECORDS` records of each section, at `MOST_POINTERS` pointers of a name, and at each label and pointer
once.
"""

import struct
from dataclasses import dataclass
from math import inf
from socket import AF_INET, AF_INET6, inet_ntop
from typing import NamedTuple

A, CNAME, SOA, AAAA = 1, 5, 6, 28
NO_ERROR, FORMAT_ERROR, SERVER_FAILURE, NO_SUCH_NAME, REFUSED = 0, 1, 2, 3, 5

MOST_RECORDS = 200
MOST_POINTERS = 32
MOST_ALIASES = 16

_INTERNET = 1
_HEADER = struct.Struct(">HHHHHH")
_RECORD = struct.Struct(">HHIH")
_RESPONSE, _OPERATION, _CUT, _RECURSION_DESIRED, _CODE = 0x8000, 0x7800, 0x0200, 0x0100, 0x000F
_FAMILIES = {A: (AF_INET, 4), AAAA: (AF_INET6, 16)}
_MOST_TTL = 0x7FFFFFFF  # RFC 2181, section 8: a greater one is none


class Malformed(Exception):
    """A message that is no answer to the question."""


class Unreadable(Malformed):
    """A message whose head answers the question, so that its sender knew number and name, but whose rest is
    nonsense."""


@dataclass(frozen=True, slots=True)
class DnsAnswer:
    """An answer: its code, and addresses with the least TTL on the way to them.

    If there are no addresses, `alias` is the name that aliases lead to ("" if there are none), for `alias_ttl_s`. Then
    `ttl_s` says how long their lack may be believed; it is infinite if the zone does not say, and then an alias is
    worth following.
    """

    code: int
    cut: bool
    addresses: tuple[str, ...] = ()
    ttl_s: float = inf
    alias: str = ""
    alias_ttl_s: float = inf


def question_of(name: str, kind: int) -> bytes:
    """Return the question section for `name` (as `fyke.fetcher.addresses.is_name` allows) and records of `kind`."""
    labels = name.lower().encode("ascii").split(b".")
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0" + struct.pack(">HH", kind, _INTERNET)


def query(number: int, question: bytes) -> bytes:
    """Return the message that asks `question`, without EDNS: answers beyond 512 bytes are asked for over TCP."""
    return _HEADER.pack(number, _RECURSION_DESIRED, 1, 0, 0, 0) + question


def read(message: bytes, number: int, question: bytes) -> DnsAnswer:
    """Return the answer in `message` to the query `number` with `question`. Raises Malformed."""
    begin = _HEADER.size + len(question)
    if len(message) < begin:
        raise Malformed("it ends too early")
    got, flags, questions, answers, authorities, _ = _HEADER.unpack_from(message)
    if got != number or not flags & _RESPONSE or flags & _OPERATION or questions != 1:
        raise Malformed("it does not answer this query")
    if message[_HEADER.size : begin].lower() != question:  # lengths of labels are below the capitals
        raise Malformed("it answers another question")
    code, cut = flags & _CODE, bool(flags & _CUT)
    if cut or code not in (NO_ERROR, NO_SUCH_NAME):
        return DnsAnswer(code, cut)
    try:
        return _read(_Names(message), code, begin, answers, authorities)
    except (IndexError, struct.error) as error:
        raise Unreadable("it ends too early") from error


def _read(names: "_Names", code: int, place: int, answers: int, authorities: int) -> DnsAnswer:
    """Read the sections that begin at `place`, behind the question."""
    message = names.message
    kind = int.from_bytes(message[place - 4 : place - 2], "big")
    aliases: dict[bytes, tuple[bytes, int]] = {}
    found: dict[bytes, list[tuple[str, int]]] = {}
    for _ in range(min(answers, MOST_RECORDS)):
        owner, what, ttl_s, data, place = _record(names, place)
        if what == CNAME:
            aliases.setdefault(owner, (names.at(data)[0], ttl_s))
        elif what == kind:
            found.setdefault(owner, []).append((_address(message[data:place], kind), ttl_s))
    name, least_s = _followed(names.at(_HEADER.size)[0], aliases)
    records = found.get(name, [])
    if code == NO_ERROR and records:
        addresses = dict.fromkeys(address for address, _ in records)
        return DnsAnswer(code, False, tuple(addresses), min(least_s, *(ttl_s for _, ttl_s in records)))
    negative_s = _negative(names, place, authorities) if answers <= MOST_RECORDS else inf
    return DnsAnswer(code, False, (), negative_s, _dotted(name) if aliases else "", least_s)


def _followed(name: bytes, aliases: dict[bytes, tuple[bytes, int]]) -> tuple[bytes, float]:
    """Return the name that the aliases of `name` lead to, and the least TTL on the way."""
    least = inf
    for _ in range(MOST_ALIASES):
        if name not in aliases:
            return name, least
        name, ttl_s = aliases[name]
        least = min(least, ttl_s)
    raise Unreadable("its aliases do not end")


def _negative(names: "_Names", place: int, authorities: int) -> float:
    """Return the seconds that the lack of records may be believed (RFC 2308, section 5), infinite if no zone says."""
    for _ in range(min(authorities, MOST_RECORDS)):
        _, what, ttl_s, data, place = _record(names, place)
        if what == SOA and place - data >= 20:
            return float(min(ttl_s, int.from_bytes(names.message[place - 4 : place], "big")))
    return inf


def _record(names: "_Names", place: int) -> tuple[bytes, int, int, int, int]:
    """Return owner, type (0 of another class), TTL, begin and end of the data of the record at `place`."""
    owner, place = names.at(place)
    what, network, ttl_s, size = _RECORD.unpack_from(names.message, place)
    begin = place + _RECORD.size
    if begin + size > len(names.message):
        raise Unreadable("it ends too early")
    return owner, what if network == _INTERNET else 0, ttl_s if ttl_s <= _MOST_TTL else 0, begin, begin + size


def _address(data: bytes, kind: int) -> str:
    family, size = _FAMILIES[kind]
    if len(data) != size:
        raise Unreadable(f"an address of {len(data)} bytes")
    return inet_ntop(family, data)


class _Rest(NamedTuple):
    """The rest of names that begin in one row of labels."""

    end: int  # of the row
    tail: bytes  # labels that a pointer behind the row leads to
    pointers: int  # on the way to the end of the name
    after: int  # the place behind the name


class _Names:
    """The names of `message`. Many may lead to one place, which is read once, so that all names together take a time
    that is linear in the message."""

    __slots__ = ("_rests", "message")

    def __init__(self, message: bytes) -> None:
        self.message = message
        self._rests: dict[int, _Rest] = {}  # by the place of each label and pointer that was read

    def at(self, place: int) -> tuple[bytes, int]:
        """Return the labels of the name at `place`, in small letters, each behind its length, and the place behind the
        name. Raises Unreadable, or IndexError if the message ends before."""
        name, rest = self._read(place, 0)
        return name, rest.after

    def _read(self, place: int, pointers: int) -> tuple[bytes, _Rest]:
        """Return the name at `place`, to which `pointers` led."""
        rest = self._rests.get(place) or self._rest(place, pointers)
        name = self.message[place : rest.end].lower() + rest.tail  # lengths of labels are below the capitals
        if len(name) > 254:
            raise Unreadable("a name of more than 255 bytes")
        return name, rest

    def _rest(self, place: int, pointers: int) -> _Rest:
        row: list[int] = []
        begin = place
        while (known := self._rests.get(place)) is None and 0 < (length := self.message[place]) < 64:
            row.append(place)
            place += 1 + length
            if place - begin > 254:
                raise Unreadable("a name of more than 255 bytes")
        if known is None:
            row.append(place)
            known = self._end(place, pointers)
        self._rests.update(dict.fromkeys(row, known))
        return known

    def _end(self, place: int, pointers: int) -> _Rest:
        """Return the end of a row of labels: nothing, or a pointer. Pointers lead back only."""
        length = self.message[place]
        if not length:
            return _Rest(place, b"", 0, place + 1)
        if length < 192:
            raise Unreadable("a label of an unknown kind")
        target = int.from_bytes(self.message[place : place + 2], "big") & 0x3FFF
        if target >= place or pointers == MOST_POINTERS:
            raise Unreadable("a name points nowhere")
        tail, rest = self._read(target, pointers + 1)
        if rest.pointers == MOST_POINTERS:
            raise Unreadable("a name points nowhere")
        return _Rest(place, tail, rest.pointers + 1, place + 2)


def _dotted(name: bytes) -> str:
    """Return the labels of `name`, which may hold any byte, with dots between them."""
    labels = []
    place = 0
    while place < len(name):
        labels.append(name[place + 1 : place + 1 + name[place]])
        place += 1 + name[place]
    return b".".join(labels).decode("latin-1")
