"""Name servers that err: the DNS answers for a host, by the word of its behaviour.

`answers` returns the datagrams that answer a question, possibly none. Private addresses are allowed for names below
`.hostile`, by the settings, and not for names below `.stranger`.
"""

import struct
from collections.abc import Callable

from fyke.lab.simweb.dns import CNAME, NOERROR, NXDOMAIN, SERVFAIL, A, DnsQuestion, answer, name_wire, record
from fyke.lab.simweb.hostile.script import Behaviour

_AAAA, _POINTER, _REFUSED = 28, b"\xc0\x0c", 5
_TTL_S = 300


def _a(address: str, ttl_s: int = _TTL_S) -> bytes:
    return record(_POINTER, A, ttl_s, bytes(map(int, address.split("."))))


def _addresses(*addresses: str, ttl_s: int = _TTL_S) -> Callable[[DnsQuestion, str], list[bytes]]:
    def said(question: DnsQuestion, own: str) -> list[bytes]:
        found = [_a(address or own, ttl_s) for address in addresses] if question.type == A else []
        return [answer(question, NOERROR, found)]

    return said


def _six(address: bytes) -> Callable[[DnsQuestion, str], list[bytes]]:
    def said(question: DnsQuestion, own: str) -> list[bytes]:
        found = [record(_POINTER, _AAAA, _TTL_S, address)] if question.type == _AAAA else []
        return [answer(question, NOERROR, found)]

    return said


def _code(code: int) -> Callable[[DnsQuestion, str], list[bytes]]:
    return lambda question, own: [answer(question, code, [])]


def _alias(target: str) -> Callable[[DnsQuestion, str], list[bytes]]:
    def said(question: DnsQuestion, own: str) -> list[bytes]:
        first, _, rest = question.name.partition(".")
        number = int("".join(filter(str.isdigit, first)) or 0) + 1
        to = target.replace("%NEXT%", f"n{number}.{rest if first[1:].isdigit() else question.name}")
        return [answer(question, NOERROR, [record(_POINTER, CNAME, _TTL_S, name_wire(to or question.name))])]

    return said


def _wire(change: Callable[[bytes], bytes]) -> Callable[[DnsQuestion, str], list[bytes]]:
    """The right answer with its bytes changed."""
    return lambda question, own: [change(answer(question, NOERROR, [_a(own)]))]


def _renamed(question: DnsQuestion, own: str) -> list[bytes]:
    other = name_wire("other.example") + bytes(question.wire[-4:])
    return [struct.pack(">HHHHHH", question.number, 0x8580, 1, 1, 0, 0) + other + _a(own)]


_SAYS: dict[str, Callable[[DnsQuestion, str], list[bytes]]] = {
    "": _addresses(""),
    "nowhere": lambda question, own: [answer(question, NXDOMAIN, [], negative=True)],
    "fails": _code(SERVFAIL),
    "refuses": _code(_REFUSED),
    "odd": _code(11),
    "silent": lambda question, own: [],
    "empty": _addresses(),
    "private-10": _addresses("10.0.0.1"),
    "private-192": _addresses("192.168.1.1"),
    "private-172": _addresses("172.16.0.1"),
    "metadata": _addresses("169.254.169.254"),
    "loopback": _addresses("127.0.0.1"),
    "zero": _addresses("0.0.0.0"),
    "broadcast": _addresses("255.255.255.255"),
    "multicast": _addresses("224.0.0.1"),
    "shared": _addresses("100.64.0.1"),
    "reserved": _addresses("240.0.0.1"),
    "six-loopback": _six(bytes(15) + b"\x01"),
    "six-mapped": _six(bytes(10) + b"\xff\xff\x7f\0\0\x01"),
    "six-link-local": _six(b"\xfe\x80" + bytes(13) + b"\x01"),
    "six-unique": _six(b"\xfd" + bytes(14) + b"\x01"),
    "six-nat64": _six(b"\0\x64\xff\x9b" + bytes(8) + b"\x7f\0\0\x01"),
    "ttl-0": _addresses("", ttl_s=0),
    "ttl-of-68-years": _addresses("", ttl_s=0x7FFFFFFF),
    "ttl-negative": _addresses("", ttl_s=0xFFFFFFFF),
    "many": _addresses(*[""] * 200),
    "alias-of-itself": _alias(""),
    "alias-without-end": _alias("%NEXT%"),
    "alias-to-nowhere": _alias("nowhere-at-all.hostile"),
    "alias-to-here": _alias("localhost"),
    "cut": _wire(lambda wire: wire[:2] + b"\x87\x80" + wire[4:]),
    "malformed": _wire(lambda wire: wire[:-7]),
    "pointers": lambda question, own: [answer(question, NOERROR, [record(b"\xc0\x2b", A, 1, b"\xc0\x2b\xc0\x2b")])],
    "garbage": _wire(lambda wire: wire[:2] + b"\xff" * 500),
    "another-number": _wire(lambda wire: b"\0\0" + wire[2:]),
    "another-name": _renamed,
    "counts-that-lie": _wire(lambda wire: wire[:6] + b"\xff\xff\xff\xff\xff\xff" + wire[12:]),
    "twice": lambda question, own: [answer(question, NOERROR, [_a(own)])] * 2,
    "a-question": _wire(lambda wire: wire[:2] + b"\x01\0" + wire[4:]),
}


def answers(word: str, question: DnsQuestion, own: str) -> list[bytes]:
    """Return the datagrams of the name server with behaviour `word` for a host at the address `own`."""
    return _SAYS[word](question, own)


BEHAVIOURS = [Behaviour(f"name-{word}", resolving=word) for word in _SAYS if word]
