"""What is said to a name server and what it says: DNS messages (RFC 1035, section 4), as far as addresses need them.

Called by `fyke.fetcher.dns_query` only. Decides without I/O.

Invariants: whatever the bytes, `read` returns a `DnsAnswer` or raises `Malformed`, and looks at `MOST_RECORDS` records
of each section at most, and at `MOST_POINTERS` pointers of a name. Only addresses of the name that was asked for
are believed, or of the name that its chain of aliases, in the same answer, ends at.
"""

import struct
from dataclasses import dataclass
from math import inf
from socket import AF_INET, AF_INET6, inet_ntop

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
_MOST_TTL = 0x7FFFFFFF  # RFC 2181, section 8: beyond is none


class Malformed(Exception):
    """A message that is no answer to the question."""


@dataclass(frozen=True, slots=True)
class DnsAnswer:
    """An answer: its code, and addresses with the least TTL on the way to them.

    Where there are no addresses, `alias` is the name that aliases lead to ("" where there are none), and `ttl_s` how
    long that may be believed (infinite where the zone does not say; then an alias is worth following).
    """

    code: int
    cut: bool
    addresses: tuple[str, ...] = ()
    ttl_s: float = inf
    alias: str = ""


def question_of(name: str, kind: int) -> bytes:
    """The question section for `name` (as `fyke.fetcher.addresses.is_name` has it) and records of `kind`."""
    labels = name.lower().encode("ascii").split(b".")
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0" + struct.pack(">HH", kind, _INTERNET)


def query(number: int, question: bytes) -> bytes:
    """The message that asks `question`. Without EDNS: what does not fit into 512 bytes is asked for over TCP."""
    return _HEADER.pack(number, _RECURSION_DESIRED, 1, 0, 0, 0) + question


def read(message: bytes, number: int, question: bytes) -> DnsAnswer:
    """What `message` answers to the query `number` with `question`. Raises Malformed."""
    try:
        return _read(message, number, question)
    except (IndexError, struct.error) as error:
        raise Malformed("it ends too early") from error


def _read(message: bytes, number: int, question: bytes) -> DnsAnswer:
    got, flags, questions, answers, authorities, _ = _HEADER.unpack_from(message)
    begin = _HEADER.size + len(question)
    if got != number or not flags & _RESPONSE or flags & _OPERATION or questions != 1:
        raise Malformed("it is no answer to this query")
    if message[_HEADER.size : begin].lower() != question:  # lengths of labels are below the capitals
        raise Malformed("it answers another question")
    code, cut = flags & _CODE, bool(flags & _CUT)
    if cut or code not in (NO_ERROR, NO_SUCH_NAME):
        return DnsAnswer(code, cut)
    kind = int.from_bytes(question[-4:-2], "big")
    aliases: dict[str, tuple[str, int]] = {}
    found: dict[str, list[tuple[str, int]]] = {}
    place = begin
    for _ in range(min(answers, MOST_RECORDS)):
        owner, what, ttl_s, data, place = _record(message, place)
        if what == CNAME:
            aliases.setdefault(owner, (_name(message, data)[0], ttl_s))
        elif what == kind:
            found.setdefault(owner, []).append((_address(message[data:place], kind), ttl_s))
    name, least_s = _followed(_name(message, _HEADER.size)[0], aliases)
    records = found.get(name, [])
    if code == NO_ERROR and records:
        addresses = dict.fromkeys(address for address, _ in records)
        return DnsAnswer(code, cut, tuple(addresses), min(least_s, *(ttl_s for _, ttl_s in records)))
    negative_s = _negative(message, place, authorities) if answers <= MOST_RECORDS else inf
    return DnsAnswer(code, cut, (), negative_s, name if aliases else "")


def _followed(name: str, aliases: dict[str, tuple[str, int]]) -> tuple[str, float]:
    """Where the aliases of `name` lead, and the least TTL on the way."""
    least = inf
    for _ in range(MOST_ALIASES):
        if name not in aliases:
            return name, least
        name, ttl_s = aliases[name]
        least = min(least, ttl_s)
    raise Malformed("its aliases do not end")


def _negative(message: bytes, place: int, authorities: int) -> float:
    """Seconds that the lack of records may be believed (RFC 2308, section 5): infinite where no zone says."""
    for _ in range(min(authorities, MOST_RECORDS)):
        _, what, ttl_s, data, place = _record(message, place)
        if what == SOA and place - data >= 20:
            return float(min(ttl_s, int.from_bytes(message[place - 4 : place], "big")))
    return inf


def _record(message: bytes, place: int) -> tuple[str, int, int, int, int]:
    """Owner, type (0 of another class), TTL, begin and end of the data of the record at `place`."""
    owner, place = _name(message, place)
    what, network, ttl_s, size = _RECORD.unpack_from(message, place)
    begin = place + _RECORD.size
    if begin + size > len(message):
        raise Malformed("it ends too early")
    return owner, what if network == _INTERNET else 0, ttl_s if ttl_s <= _MOST_TTL else 0, begin, begin + size


def _address(data: bytes, kind: int) -> str:
    family, size = _FAMILIES[kind]
    if len(data) != size:
        raise Malformed(f"an address of {len(data)} bytes")
    return inet_ntop(family, data)


def _name(message: bytes, place: int) -> tuple[str, int]:
    """The name at `place`, in small letters, and where what follows it begins. Pointers lead back only."""
    labels: list[bytes] = []
    size = pointers = after = 0
    while length := message[place]:
        if length < 64:
            labels.append(message[place + 1 : place + 1 + length])
            place += 1 + length
            size += 1 + length
        elif length >= 192:
            target = int.from_bytes(message[place : place + 2], "big") & 0x3FFF
            after = after or place + 2
            pointers += 1
            if target >= place or pointers > MOST_POINTERS:
                raise Malformed("a name points nowhere")
            place = target
        else:
            raise Malformed("a label of a kind nobody knows")
        if size > 254:
            raise Malformed("a name of more than 255 bytes")
    return b".".join(labels).decode("latin-1").lower(), after or place + 1
