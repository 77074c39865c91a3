"""Laws of asking name servers: what is wrong with one answer, or one server, costs nothing else."""

import asyncio
import gc
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import pytest
from dnslib import AAAA, CNAME, QTYPE, RCODE, RR, SOA, A, DNSRecord
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.config import DnsSection
from fyke.core.outcomes import Outcome
from fyke.fetcher import dns_datagrams, dns_query
from fyke.fetcher import dns_message as dns
from fyke.fetcher.dns_datagrams import BURST, MOST_UNREADABLE
from fyke.fetcher.dns_query import NameServers
from ports import free_port

PUBLIC, OTHER = "93.184.216.34", "8.8.4.4"
Answering = Callable[[DNSRecord], list[bytes]]
SILENCE: list[bytes] = []  # over TCP: a connection that is kept, and nothing on it


@dataclass
class Server:
    """Sends what `answering` makes of a query; over TCP what `answering_tcp` does."""

    answering: Answering
    answering_tcp: Answering | None = None
    queries: list[DNSRecord] = field(default_factory=list)
    ports: set[int] = field(default_factory=set)
    address: str = ""

    def listen(self) -> socket.socket:
        listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        listening.bind(("127.0.0.1", free_port()))
        self.address = f"127.0.0.1:{listening.getsockname()[1]}"
        asyncio.get_running_loop().add_reader(listening, self._answer_all, listening)
        return listening

    def _answer_all(self, listening: socket.socket) -> None:
        with suppress(BlockingIOError):
            while True:
                data, whose = listening.recvfrom(4096)
                query = DNSRecord.parse(data)
                self.queries.append(query)
                self.ports.add(whose[1])
                for message in self.answering(query):
                    listening.sendto(message, whose)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self.answering_tcp is not None
        try:
            query = DNSRecord.parse(await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big")))
        except asyncio.IncompleteReadError:
            writer.close()  # whoever asked waited too long for the connection
            return
        messages = self.answering_tcp(query)
        if messages is SILENCE:
            await reader.read()
        for message in messages:
            writer.write(len(message).to_bytes(2, "big") + message)
        writer.close()


@asynccontextmanager
async def asking(*servers: Server, **settings: Any) -> AsyncIterator[NameServers]:
    """`NameServers` that ask `servers`."""
    sockets = [server.listen() for server in servers]
    over_tcp = [
        await asyncio.start_server(server.connected, "127.0.0.1", listening.getsockname()[1])
        for server, listening in zip(servers, sockets, strict=True)
        if server.answering_tcp is not None
    ]
    config = DnsSection(servers=[server.address for server in servers], **settings)
    asked = NameServers(config)
    try:
        yield asked
    finally:
        await asked.close()
        for listening in sockets:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        for each in over_tcp:
            each.close()
        await asyncio.sleep(0)


def good(query: DNSRecord) -> list[bytes]:
    reply = query.reply()
    if query.q.qtype == QTYPE.A:
        reply.add_answer(RR(str(query.q.qname), QTYPE.A, rdata=A(PUBLIC), ttl=300))
    return [reply.pack()]


def cut(query: DNSRecord) -> list[bytes]:
    """What is said of an answer that is too long."""
    reply = query.reply()
    reply.header.tc = 1
    return [reply.pack()]


def name_of(query: DNSRecord) -> str:
    return str(query.q.qname).rstrip(".")


def wrong(query: DNSRecord) -> list[bytes]:
    """Messages that answer nothing, whatever they look like."""
    (right,) = good(query)
    other = DNSRecord.question("other.test").reply()
    other.header.id = query.header.id
    other.add_answer(RR("other.test", QTYPE.A, rdata=A(OTHER), ttl=300))
    pointing = right[:12] + right[12 : len(query.pack())] + b"\xc0\xff" + right[-14:]
    return [
        b"", b"\0", right[:2], right[:11], right[: len(right) - 1], query.pack(), other.pack(), pointing,
        struct.pack(">H", query.header.id ^ 1) + right[2:],
        right[:2] + b"\xff" * 30, right[:4] + struct.pack(">HHHH", 0, 1, 0, 0) + right[12:],
        right[:6] + struct.pack(">H", 0xFFFF) + right[8:],
    ]  # fmt: skip


async def test_wrong_answers_are_passed_over_and_the_right_one_counts() -> None:
    async with asking(Server(lambda query: [*wrong(query), *good(query)]), timeout_s=30) as servers:
        reply = await servers.ask("a.test")
        assert (reply.outcome, reply.addresses) == (Outcome.OK, (PUBLIC,))


def unreadable(query: DNSRecord) -> bytes:
    """An answer to this query that ends too early."""
    return good(query)[0][:-1]


@pytest.mark.parametrize("tries", [1, 3])
async def test_of_answers_that_cannot_be_read_few_are_looked_at(monkeypatch: pytest.MonkeyPatch, tries: int) -> None:
    """A server may send many of them, each as dear as can be: they fail a try, and the next one may succeed."""
    read = 0
    real = dns.read

    def counted(message: bytes, number: int, question: bytes) -> dns.DnsAnswer:
        nonlocal read
        read += 1
        return real(message, number, question)

    monkeypatch.setattr(dns, "read", counted)
    server = Server(lambda query: [unreadable(query)] * 200 if len(server.queries) < 3 else good(query))
    async with asking(server, timeout_s=60, tries=tries) as servers, asyncio.timeout(20):
        reply = await servers.ask("a.test")
    assert reply.outcome is (Outcome.OK if tries == 3 else Outcome.DNS_FAILED)
    assert read == min(tries, 2) * MOST_UNREADABLE + (tries == 3)
    assert "malformed" in reply.detail or reply.addresses == (PUBLIC,)


async def test_one_answer_that_cannot_be_read_is_why_there_is_none() -> None:
    """It was waited for others, in vain; that none came in time is not what is wrong."""
    async with asking(Server(lambda query: [unreadable(query)]), timeout_s=0.2, tries=1) as servers:
        reply = await servers.ask("a.test")
    assert reply.outcome is Outcome.DNS_FAILED and "malformed" in reply.detail


async def test_who_guesses_fails_no_question() -> None:
    """Whatever is sent to a port: as long as number or question is another, the question goes on waiting."""

    def guessed(query: DNSRecord) -> list[bytes]:
        bad = unreadable(query)
        numbers = [struct.pack(">H", query.header.id ^ other) + bad[2:] for other in range(1, 60)]
        return numbers + 20 * [bad[:13] + b"z" + bad[14:], query.pack(), bad[:12], bad[:20], bad[:5] + b"\0" + bad[6:]]

    async with asking(Server(lambda query: [*guessed(query), *good(query)]), timeout_s=30, tries=1) as servers:
        reply = await servers.ask("a.test")
        assert (reply.outcome, reply.addresses) == (Outcome.OK, (PUBLIC,))


async def test_malformed_answers_fail_no_other_name() -> None:
    bad = {f"h{number}.test" for number in range(0, 200, 2)}

    def answering(query: DNSRecord) -> list[bytes]:
        return wrong(query) if name_of(query) in bad else good(query)

    async with asking(Server(answering), timeout_s=1.0, tries=1) as servers:
        names = [f"h{number}.test" for number in range(200)]
        replies = dict(zip(names, await asyncio.gather(*map(servers.ask, names)), strict=True))
        assert {name for name in names if replies[name].outcome is not Outcome.OK} == bad
        assert {reply.outcome for name, reply in replies.items() if name in bad} == {Outcome.DNS_FAILED}


async def test_a_server_that_rests_is_asked_again_as_often_as_the_settings_say() -> None:
    asked: dict[str, int] = {}

    def answering(query: DNSRecord) -> list[bytes]:
        asked[name_of(query)] = asked.get(name_of(query), 0) + 1
        return good(query) if asked[name_of(query)] > 2 else []

    async with asking(Server(answering), timeout_s=0.5, tries=3) as servers:
        replies = await asyncio.gather(*(servers.ask(f"h{number}.test") for number in range(100)))
        assert {reply.outcome for reply in replies} == {Outcome.OK}
        assert set(asked.values()) == {3}


@pytest.mark.parametrize("tries", [1, 2, 5])
async def test_a_silent_server_is_asked_exactly_so_often(tries: int) -> None:
    server, second = Server(lambda query: []), Server(lambda query: [])
    async with asking(server, second, timeout_s=0.05, tries=tries) as servers:
        assert (await servers.ask("a.test")).outcome is Outcome.DNS_FAILED
        assert (len(server.queries), len(second.queries)) == ((tries + 1) // 2, tries // 2)


async def test_names_that_fail_leave_no_garbage_to_be_collected() -> None:
    """Else ten thousand of them would hold the loop for a tenth of a second, whenever the collector comes by."""

    def servfail(query: DNSRecord) -> list[bytes]:
        reply = query.reply()
        reply.header.rcode = RCODE.SERVFAIL if name_of(query).startswith("f") else RCODE.NOERROR
        return [] if name_of(query).startswith("s") else [reply.pack()]

    async with asking(Server(servfail), timeout_s=0.2, tries=2) as servers:
        for _ in range(2):  # the first time makes what is kept
            gc.collect()
            gc.disable()
            try:
                names = [f"{kind}{number}.test" for kind in "fs" for number in range(50)]
                replies = await asyncio.gather(*map(servers.ask, names))
                assert {reply.outcome for reply in replies} == {Outcome.DNS_FAILED}
                await asyncio.sleep(0.01)
                left = gc.collect()
            finally:
                gc.enable()
        assert left < len(names)


async def test_a_server_that_is_gone_costs_nothing_where_there_is_another() -> None:
    alive = Server(good)
    async with asking(alive):
        nobody = f"127.0.0.1:{free_port()}"
        servers = NameServers(DnsSection(servers=[nobody, alive.address], timeout_s=60, tries=2))
        async with asyncio.timeout(20):
            assert (await servers.ask("a.test")).outcome is Outcome.OK
        await servers.close()


async def test_the_server_that_answered_last_is_asked_first() -> None:
    silent, alive = Server(lambda query: []), Server(good)
    async with asking(silent, alive, timeout_s=0.5, tries=2) as servers:
        for number in range(5):
            assert (await servers.ask(f"h{number}.test")).outcome is Outcome.OK
        assert (len(silent.queries), len(alive.queries)) == (1, 5)


async def test_what_does_not_fit_is_asked_for_over_tcp() -> None:
    addresses = [f"93.184.216.{number}" for number in range(1, 101)]

    def whole(query: DNSRecord) -> list[bytes]:
        reply = query.reply()
        reply.add_answer(*(RR(name_of(query), QTYPE.A, rdata=A(address), ttl=60) for address in addresses))
        return [reply.pack()]

    async with asking(Server(cut, whole)) as servers:
        reply = await servers.ask("a.test")
        assert (reply.addresses, reply.ttl_s) == (tuple(addresses), 60)


@pytest.mark.parametrize("said", [[b""], [b"\0"], [b"x" * 100], []])
async def test_what_is_wrong_over_tcp_is_a_failure(said: list[bytes]) -> None:
    async with asking(Server(cut, lambda query: said), tries=1) as servers:
        assert (await servers.ask("a.test")).outcome is Outcome.DNS_FAILED


async def test_what_is_cut_over_tcp_too_says_nothing_of_the_name() -> None:
    """Else it would have no address for as long as that is believed."""
    async with asking(Server(cut, cut), tries=1) as servers:
        assert (await servers.ask("a.test")).outcome is Outcome.DNS_FAILED


async def test_names_whose_answers_over_tcp_never_come_keep_others_no_longer_than_one_does() -> None:
    server = Server(lambda query: (good if name_of(query).startswith("good") else cut)(query), lambda query: SILENCE)
    names = 20 * dns_query.TCP_CONNECTIONS
    async with asking(server, tries=1, timeout_s=1.0) as servers:
        asking_cut = asyncio.gather(*(servers.ask(f"cut{number}.test") for number in range(names)))
        assert (await servers.ask("good.test")).outcome is Outcome.OK
        async with asyncio.timeout(10):
            assert {reply.outcome for reply in await asking_cut} == {Outcome.DNS_FAILED}


async def test_an_address_of_another_name_is_not_believed() -> None:
    def answering(query: DNSRecord) -> list[bytes]:
        reply = query.reply()
        reply.add_answer(RR("evil.test", QTYPE.A, rdata=A(OTHER), ttl=300))
        if name_of(query) != "b.test":
            reply.add_answer(RR(name_of(query), QTYPE.CNAME, rdata=CNAME("b.test"), ttl=300))
        return [reply.pack()]

    async with asking(Server(answering)) as servers:
        reply = await servers.ask("a.test")
        assert reply.outcome is Outcome.NO_SUCH_NAME and not reply.addresses


async def test_an_alias_without_its_address_is_asked_for() -> None:
    chain = {"a.test": "b.test", "b.test": "c.test"}

    def answering(query: DNSRecord) -> list[bytes]:
        name = name_of(query)
        if name not in chain:
            return good(query)
        reply = query.reply()
        reply.add_answer(RR(name, QTYPE.CNAME, rdata=CNAME(chain[name]), ttl=20))
        return [reply.pack()]

    async with asking(Server(answering)) as servers:
        reply = await servers.ask("a.test")
        assert (reply.addresses, reply.ttl_s) == ((PUBLIC,), 20), "an alias is believed no longer than it says"


async def test_aliases_without_end_end() -> None:
    def answering(query: DNSRecord) -> list[bytes]:
        reply = query.reply()
        reply.add_answer(RR(name_of(query), QTYPE.CNAME, rdata=CNAME(f"x{name_of(query)}"), ttl=20))
        return [reply.pack()]

    server = Server(answering)
    async with asking(server) as servers:
        assert (await servers.ask("a.test")).outcome is Outcome.DNS_FAILED
        assert len(server.queries) <= 6


async def test_the_zone_says_how_long_a_name_does_not_exist() -> None:
    def answering(query: DNSRecord) -> list[bytes]:
        reply = query.reply()
        reply.header.rcode = RCODE.NXDOMAIN
        reply.add_auth(RR("test", QTYPE.SOA, rdata=SOA("ns.test", "ann.test", (1, 2, 3, 4, 77)), ttl=900))
        return [reply.pack()]

    async with asking(Server(answering)) as servers:
        reply = await servers.ask("a.test")
        assert (reply.outcome, reply.ttl_s) == (Outcome.NO_SUCH_NAME, 77)


async def test_thousands_are_asked_over_a_few_sockets_with_numbers_and_ports_drawn() -> None:
    server = Server(good)
    async with asking(server, timeout_s=10, tries=5) as servers:
        replies = await asyncio.gather(*(servers.ask(f"h{number}.test") for number in range(3000)))
        assert {reply.outcome for reply in replies} == {Outcome.OK}
        assert servers.open_sockets <= 16
        assert len(server.ports) >= 16
        numbers = [query.header.id for query in server.queries]
        assert len({later - sooner for sooner, later in pairwise(numbers)}) > 1000


async def test_names_without_an_answer_keep_no_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many more than a server's buffer is taken to hold; and none is taken for read for the time that passed."""
    monkeypatch.setattr(dns_datagrams, "TAKEN_S", 3600.0)
    server = Server(lambda query: [] if name_of(query).startswith("silent") else good(query))
    async with asking(server, timeout_s=60) as servers:
        silent = [asyncio.ensure_future(servers.ask(f"silent{number}.test")) for number in range(10 * BURST)]
        await asyncio.sleep(0)  # they are first
        async with asyncio.timeout(20):
            assert (await servers.ask("a.test")).outcome is Outcome.OK
        assert not any(one.done() for one in silent)
        assert sum(name_of(query).startswith("localhost") for query in server.queries) <= 10 + 1
        for one in silent:
            one.cancel()
        await asyncio.gather(*silent, return_exceptions=True)
        async with asyncio.timeout(20):
            assert (await servers.ask("b.test")).outcome is Outcome.OK


async def test_a_server_that_says_it_failed_is_not_asked_the_same_at_once() -> None:
    def failing(query: DNSRecord) -> list[bytes]:
        reply = query.reply()
        reply.header.rcode = RCODE.SERVFAIL
        return [reply.pack()]

    first, second = Server(failing), Server(failing)
    async with asking(first, second, tries=5) as servers:
        assert (await servers.ask("a.test")).outcome is Outcome.DNS_FAILED
        assert (len(first.queries), len(second.queries)) == (1, 1)


QUESTION = dns.question_of("www.a.test", dns.A)
PIECES = st.one_of(
    st.binary(max_size=30),
    st.sampled_from(
        [
            b"\xc0\x0c", b"\xc0\x00", b"\xc0\xff", b"\xff\xff", b"\0", b"\x03www", b"?" + b"a" * 63, QUESTION,
            struct.pack(">HHIH", 1, 1, 300, 4), struct.pack(">HHIH", 5, 1, 300, 2), struct.pack(">HHIH", 6, 1, 9, 22),
            b"\x5d\xb8\xd8\x22", b"\xc0\x0c" * 50,
        ]
    ),
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map(b"".join), st.integers(0, 0xFFFF), st.tuples(*[st.integers(0, 0xFFFF)] * 3))
def test_whatever_the_bytes_it_is_an_answer_or_malformed(rest: bytes, flags: int, counts: tuple[int, ...]) -> None:
    message = struct.pack(">HHHHHH", 7, flags | 0x8000, 1, *counts) + QUESTION + rest
    try:
        said = dns.read(message, 7, QUESTION)
    except dns.Malformed:
        return
    assert all(address.count(".") == 3 for address in said.addresses) and said.ttl_s >= 0


class Counted(bytes):
    """A message that counts how often it is looked at."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        Counted.looks += 1
        return super().__getitem__(place)


def by_pointers(size: int) -> bytes:
    """Records whose owner and target are one name of 127 labels, behind 31 pointers."""
    row, at = b"", 12 + len(QUESTION) + 11
    parts: list[int] = []
    for part in range(32):
        parts.append(at + len(row))
        row += b"\x01a" * (4 if part < 31 else 3) + (struct.pack(">H", 0xC000 | parts[-2]) if part else b"\0")
    name = struct.pack(">H", 0xC000 | parts[-1])
    record = name + struct.pack(">HHIH", 5, 1, 1, 2) + name
    return b"\0" + struct.pack(">HHIH", 16, 1, 1, len(row)) + row + record * ((size - len(row)) // len(record))


def into_rows(size: int) -> bytes:
    """Records whose names begin at each label of rows of labels."""
    rows, at = 3 * (b"\x01a" * 126 + b"\0"), 12 + len(QUESTION) + 11
    names = (struct.pack(">H", 0xC000 | (at + record % 3 * 253 + 2 * (record // 3))) for record in range(200))
    records = b"".join(name + struct.pack(">HHIH", 5, 1, 1, 2) + name for name in names)
    return b"\0" + struct.pack(">HHIH", 16, 1, 1, len(rows)) + rows + records[: size // 16 * 16]


@pytest.mark.parametrize("size", [4_000, 65_000])
@pytest.mark.parametrize(
    "body",
    [
        *(lambda size, filling=filling: (filling * size)[:size] for filling in (
            b"\xc0\x0c", b"\xc0\x20" * 2, b"?" + b"a" * 63, b"\x01a", b"\0" + b"\0\x05\0\x01" * 2,
        )),
        by_pointers, into_rows,
    ],
)  # fmt: skip
def test_a_message_is_read_within_bounds(body: Callable[[int], bytes], size: int) -> None:
    """Each label is looked at once, however many names lead to it."""
    message = Counted(struct.pack(">HHHHHH", 7, 0x8000, 1, 0xFFFF, 0xFFFF, 0) + QUESTION + body(size))
    Counted.looks = 0
    with suppress(dns.Malformed):
        dns.read(message, 7, QUESTION)
    assert Counted.looks <= len(message) + 5 * 3 * dns.MOST_RECORDS


@given(st.lists(st.sampled_from(["a.test", "b.test", "c.test"]), min_size=1, max_size=4), st.booleans())
def test_what_others_write_is_read(chain: list[str], six: bool) -> None:
    """Messages as dnslib writes them, names pressed together by pointers."""
    names = [f"n{at}.{name}" for at, name in enumerate(chain)]
    kind = QTYPE.AAAA if six else QTYPE.A
    reply = DNSRecord.question(names[0], QTYPE.get(kind)).reply()
    for at, name in enumerate(names[1:]):
        reply.add_answer(RR(names[at], QTYPE.CNAME, rdata=CNAME(name), ttl=100 - at))
    data = AAAA("2606:2800:220:1::1") if six else A(PUBLIC)
    reply.add_answer(RR(names[-1], kind, rdata=data, ttl=500))
    said = dns.read(bytes(reply.pack()), reply.header.id, dns.question_of(names[0], kind))
    assert said.addresses == ("2606:2800:220:1::1" if six else PUBLIC,)
    assert said.ttl_s == (500 if len(names) == 1 else 102 - len(names))


async def test_of_what_was_asked_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither while one question waits for long, nor when it ended."""
    monkeypatch.setattr(dns_datagrams, "IN_FLIGHT", 20)
    server = Server(lambda query: [] if name_of(query).startswith("silent") else good(query))
    async with asking(server, timeout_s=1.0, tries=1) as servers:
        silent = asyncio.ensure_future(servers.ask("silent.test"))
        ((_, datagrams),) = servers._servers
        for portion in range(20):
            await asyncio.gather(*(servers.ask(f"h{portion}-{number}.test") for number in range(10)))
            assert len(datagrams._sent) <= 2 * 20
        assert (await silent).outcome is Outcome.DNS_FAILED
        await asyncio.sleep(0.01)
        assert not (datagrams._sent or datagrams._untaken or datagrams._unsent or datagrams._waiting)


async def test_no_more_wait_than_may_and_all_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns_datagrams, "IN_FLIGHT", 8)
    server = Server(lambda query: [] if name_of(query).startswith("silent") else good(query))
    async with asking(server, timeout_s=0.1, tries=1) as servers:
        names = [f"{'silent' if number % 3 else 'good'}{number}.test" for number in range(60)]
        asked = [asyncio.ensure_future(servers.ask(name)) for name in names]
        most = 0
        while not all(one.done() for one in asked):
            most = max(most, sum(len(channel.waiting) for channel in servers._servers[0][1]._open))
            await asyncio.sleep(0.005)
        ended = {name[:4]: one.result().outcome for name, one in zip(names, asked, strict=True)}
    assert most <= 8
    assert ended == {"good": Outcome.OK, "sile": Outcome.DNS_FAILED}


SAYS = ["addresses", "nothing", "no such name", "fails", "is silent"]


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize(("fours", "sixes"), [*product(SAYS, SAYS)])
async def test_a_name_is_without_an_address_only_if_the_dns_says_so_of_each_kind(
    fours: str, sixes: str, both: bool
) -> None:
    """A failure says nothing, whatever is said of the other kind."""

    def answering(query: DNSRecord) -> list[bytes]:
        kind = QTYPE[query.q.qtype]
        says, reply = (fours if kind == "A" else sixes), query.reply()
        if says == "is silent":
            return []
        if says == "addresses":
            data = A(PUBLIC) if kind == "A" else AAAA("2606:2800:220:1::1")
            reply.add_answer(RR("a.test", query.q.qtype, rdata=data, ttl=60))
        reply.header.rcode = {"no such name": RCODE.NXDOMAIN, "fails": RCODE.SERVFAIL}.get(says, RCODE.NOERROR)
        return [reply.pack()]

    async with asking(Server(answering), timeout_s=0.05, tries=1) as servers:
        found = await servers.ask("a.test", both=both)
    asked = [fours, sixes] if both or fours == "nothing" else [fours]
    failed = any(says in asked for says in ("fails", "is silent"))
    if "addresses" in asked:
        assert found.outcome is Outcome.OK and len(found.addresses) == asked.count("addresses")
    else:
        assert found.outcome is (Outcome.DNS_FAILED if failed else Outcome.NO_SUCH_NAME)
