"""Laws of the resolver, against name servers that really answer on 127.0.0.1."""

import asyncio
from contextlib import closing
from pathlib import Path

import pytest
import uvloop

from fetcher.conftest import name_servers
from fyke.core.clock import VirtualClock
from fyke.core.config import DnsSection, PolitenessSection
from fyke.core.errors import ConfigurationError
from fyke.core.outcomes import Outcome
from fyke.fetcher.addresses import is_public
from fyke.fetcher.dns_datagrams import SOCKETS, ServerAddress
from fyke.fetcher.dns_query import server_of
from fyke.fetcher.names import FAILURE_TTL_S, MOST_NAMES, MOST_TTL_S, Resolver
from fyke.fetcher.rests import Rests

PUBLIC, OTHER, SIX = "93.184.216.34", "8.8.4.4", "2606:2800:220:1::1"


def resolver_of(
    *servers,
    clock=None,
    trusted=lambda host: False,
    hosts_file="/nonexistent",
    sockets=SOCKETS,
    names=MOST_NAMES,
    **given,
):
    """A resolver that asks `servers`."""
    settings = {"timeout_s": 1.0} | given
    config = DnsSection(servers=[server.address for server in servers], **settings)
    clock = clock or VirtualClock()
    return Resolver(config, clock, trusted, hosts_file=Path(hosts_file), sockets=sockets, most_names=names)


async def settled(resolver):
    """Wait until what is in flight has landed."""
    while resolver._in_flight:
        await asyncio.gather(*resolver._in_flight.values())


@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run])
def test_an_answer_is_kept_for_its_ttl_and_not_longer(runner):
    async def scenario():
        async with name_servers({"zone": {"a.test": (PUBLIC,)}}) as (server,):
            clock = VirtualClock()
            resolver = resolver_of(server, clock=clock)
            answer = await resolver.resolve("a.test")
            assert (answer.outcome, answer.addresses) == (Outcome.OK, (PUBLIC,))
            assert answer.expires_at == clock.now() + 300
            clock.advance(269)
            assert await resolver.resolve("A.test.") == answer
            assert server.asked("a.test") == 1
            clock.advance(32)
            assert await resolver.resolve("a.test") != answer
            assert server.asked("a.test") == 2
            assert server.asked("a.test", "AAAA") == 0
            await resolver.close()

    runner(scenario())


@pytest.mark.parametrize(("ttl", "believed"), [(1, 60), (100, 100), (999_999, 86400)])
async def test_a_ttl_is_bounded(ttl, believed):
    async with name_servers({"zone": {"a.test": (PUBLIC,)}, "ttl": ttl}) as (server,):
        clock = VirtualClock()
        resolver = resolver_of(server, clock=clock)
        assert (await resolver.resolve("a.test")).expires_at == clock.now() + believed
        await resolver.close()


async def test_the_ttl_is_the_least_of_a_chain_of_aliases():
    async with name_servers({"zone": {"a.test": (PUBLIC,)}, "aliases": {"www.test": ("a.test", 80)}}) as (server,):
        clock = VirtualClock()
        resolver = resolver_of(server, clock=clock)
        answer = await resolver.resolve("www.test")
        assert (answer.addresses, answer.expires_at) == ((PUBLIC,), clock.now() + 80)
        await resolver.close()


async def test_a_name_that_does_not_exist_stays_so_for_a_while():
    async with name_servers({}) as (server,):
        clock = VirtualClock()
        resolver = resolver_of(server, clock=clock, negative_ttl_s=600)
        for _ in range(3):
            answer = await resolver.resolve("no.test")
            assert answer.outcome is Outcome.NO_SUCH_NAME and "no.test" in answer.detail
        assert server.asked("no.test") == 1
        clock.advance(601)
        server.zone["no.test"] = (PUBLIC,)
        assert (await resolver.resolve("no.test")).ok
        await resolver.close()


async def test_ipv6_only_where_there_is_no_ipv4():
    async with name_servers({"zone": {"both.test": (SIX, PUBLIC), "six.test": (SIX,), "nothing.test": ()}}) as (
        server,
    ):
        resolver = resolver_of(server)
        assert (await resolver.resolve("both.test")).addresses == (PUBLIC,)
        assert (await resolver.resolve("six.test")).addresses == (SIX,)
        nothing = await resolver.resolve("nothing.test")
        assert nothing.outcome is Outcome.NO_SUCH_NAME and "no address" in nothing.detail
        await resolver.close()


async def test_addresses_of_version_6_are_asked_for_too_if_nobody_answers_at_the_others():
    zone = {"both.test": (PUBLIC, SIX), "four.test": (PUBLIC,)} | {f"h{i}.test": (PUBLIC,) for i in range(40)}
    async with name_servers({"zone": zone}) as (server,):
        resolver = resolver_of(server, names=10)
        for name, found in (("both.test", (SIX, PUBLIC)), ("four.test", (PUBLIC,))):
            assert (await resolver.resolve(name)).addresses == (PUBLIC,)
            assert resolver.widen(name) and not resolver.widen(name.upper())
            assert (await resolver.resolve(name)).addresses == found
            assert (server.asked(name), server.asked(name, "AAAA")) == (2, 1)
        assert not resolver.widen("127.0.0.1") and not resolver.widen("localhost")
        assert all(resolver.widen(f"h{i}.test") for i in range(40)) and len(resolver._both) == 10
        await resolver.close()


@pytest.mark.parametrize("says", ["SERVFAIL", "REFUSED", "nothing"])
async def test_a_failing_server_is_a_value_and_soon_asked_again(says):
    async with name_servers({"zone": {"a.test": (PUBLIC,)}, "says": says}) as (server,):
        clock = VirtualClock()
        resolver = resolver_of(server, clock=clock, timeout_s=0.1, tries=2)
        answer = await resolver.resolve("a.test")
        assert answer.outcome is Outcome.DNS_FAILED and answer.detail.startswith("a.test: ")
        asked = len(server.questions)
        assert await resolver.resolve("a.test") == answer
        assert len(server.questions) == asked
        clock.advance(FAILURE_TTL_S + 1)
        server.says = ""
        assert (await resolver.resolve("a.test")).ok
        await resolver.close()


@pytest.mark.parametrize("says", ["SERVFAIL", "nothing"])
async def test_the_next_server_is_asked_on_its_own_port(says):
    async with name_servers({"says": says}, {"zone": {"a.test": (PUBLIC,)}}) as (dead, alive):
        assert dead.port != alive.port
        resolver = resolver_of(dead, alive, timeout_s=0.3, tries=4)
        assert (await resolver.resolve("a.test")).addresses == (PUBLIC,)
        assert dead.asked("a.test") and alive.asked("a.test")
        await resolver.close()


async def test_one_question_in_flight_however_many_wait():
    async with name_servers({"zone": {"a.test": (PUBLIC,)}}) as (server,):
        resolver = resolver_of(server)
        waiting = [asyncio.ensure_future(resolver.resolve("a.test")) for _ in range(50)]
        await asyncio.sleep(0)
        assert resolver.in_flight == 1
        waiting[0].cancel()
        answers = await asyncio.gather(*waiting[1:])
        assert {answer.addresses for answer in answers} == {(PUBLIC,)}
        assert server.asked("a.test") == 1
        await resolver.close()


PRIVATE = [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "::1", "::", "fe80::1", "fc00::1", "fec0::1", "ff0e::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:7f00:1::1", "2001:db8::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
async def test_an_address_that_is_not_public_is_refused_unless_a_seed_named_the_host(address):
    async with name_servers({"zone": {"evil.test": (address,), "seed.test": (address,)}}) as (server,):
        resolver = resolver_of(server, trusted=lambda host: host == "seed.test")
        refused = await resolver.resolve("evil.test")
        assert refused.outcome is Outcome.ADDRESS_REFUSED and not refused.addresses
        assert (await resolver.resolve("seed.test")).ok
        literal = f"[{address}]" if ":" in address else address
        assert (await resolver.resolve(literal)).outcome is Outcome.ADDRESS_REFUSED
        await resolver.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1", "0:0:0:0:0:FFFF:7f00:1"])
async def test_a_server_has_one_address_however_it_is_spelled(address, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text(f"{address} file.test\n")
    async with name_servers({"zone": {"name.test": (address,)}}) as (server,):
        resolver = resolver_of(server, trusted=lambda host: True, hosts_file=hosts)
        bare = f"[{address}]" if ":" in address else address
        for host in ("name.test", "file.test", bare):
            assert (await resolver.resolve(host)).addresses == ("127.0.0.1",), host
        await resolver.close()


async def test_of_a_mixed_answer_the_public_addresses_are_kept():
    async with name_servers({"zone": {"a.test": ("10.0.0.1", PUBLIC)}}) as (server,):
        resolver = resolver_of(server)
        assert (await resolver.resolve("a.test")).addresses == (PUBLIC,)
        await resolver.close()


async def test_an_answer_used_near_its_end_is_refreshed_while_it_is_served():
    async with name_servers({"zone": {"a.test": (PUBLIC,)}}) as (server,):
        clock = VirtualClock()
        resolver = resolver_of(server, clock=clock)
        await resolver.resolve("a.test")
        server.zone["a.test"] = (OTHER,)
        clock.advance(271)
        assert (await resolver.resolve("a.test")).addresses == (PUBLIC,)
        await settled(resolver)
        answer = resolver.cached("a.test")
        assert answer.addresses == (OTHER,) and answer.expires_at == clock.now() + 300
        assert server.asked("a.test") == 2
        await resolver.close()


async def test_refresh_asks_only_for_what_is_missing_or_near_its_end():
    async with name_servers({"zone": {"a.test": (PUBLIC,), "b.test": (PUBLIC,)}}) as (server,):
        clock = VirtualClock()
        resolver = resolver_of(server, clock=clock)
        hosts = ["a.test", "b.test", "127.0.0.1"]
        resolver.refresh(hosts)
        assert resolver.in_flight == 2
        resolver.refresh(hosts)
        assert resolver.in_flight == 2  # the same
        await settled(resolver)
        resolver.refresh(hosts)
        assert resolver.in_flight == 0  # fresh
        clock.advance(299)
        resolver.refresh(hosts)
        assert resolver.in_flight == 2
        await settled(resolver)
        assert {server.asked(host) for host in hosts[:2]} == {2}
        assert all(resolver.cached(host).expires_at == clock.now() + 300 for host in hosts[:2])
        await resolver.close()


async def test_a_refresh_that_fails_leaves_the_answer_until_it_expires():
    async with name_servers({"zone": {"a.test": (PUBLIC,)}}) as (server,):
        clock = VirtualClock()
        resolver = resolver_of(server, clock=clock, tries=1)
        await resolver.resolve("a.test")
        server.says = "SERVFAIL"
        clock.advance(280)
        for _ in range(3):
            assert (await resolver.resolve("a.test")).addresses == (PUBLIC,)
            await settled(resolver)
        assert server.asked("a.test") == 2
        clock.advance(21)
        assert (await resolver.resolve("a.test")).outcome is Outcome.DNS_FAILED
        await resolver.close()


async def test_memory_and_sockets_are_bounded():
    async with name_servers({"zone": {f"h{i}.test": (PUBLIC,) for i in range(60)}}) as (server,):
        resolver = resolver_of(server, names=10, sockets=2)
        for first in range(0, 60, 5):
            await asyncio.gather(*(resolver.resolve(f"h{first + i}.test") for i in range(5)))
            assert resolver._servers.open_sockets <= 2
        assert [n for n in range(60) if resolver.cached(f"h{n}.test")] == list(range(50, 60))
        await resolver.close()


async def test_the_hosts_file_and_localhost_need_no_dns(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text(
        "# comment\n93.184.216.34 www.intra Intra # more\n::1 six\nnot-an-address x\n::1 both\n8.8.8.8 both\n"
    )
    resolver = resolver_of(trusted=lambda host: host.endswith(("localhost", "six")), hosts_file=hosts)
    assert (await resolver.resolve("intra")).addresses == (PUBLIC,)
    assert (await resolver.resolve("both")).addresses == ("8.8.8.8",)
    assert (await resolver.resolve("six")).addresses == ("::1",)
    assert (await resolver.resolve("localhost")).addresses == ("127.0.0.1", "::1")
    assert (await resolver.resolve("app.localhost")).addresses == ("127.0.0.1", "::1")
    assert (await resolver.resolve("[2606:2800:220:1::1]")).addresses == (SIX,)
    await resolver.close()


@pytest.mark.parametrize("host", ["", "a..b", "x" * 64 + ".test", "a." * 127 + "test", "a b", "é.test", "a\\b", "."])
async def test_what_is_no_name_is_not_asked_for(host):
    resolver = resolver_of()
    assert (await resolver.resolve(host)).outcome is Outcome.NO_SUCH_NAME
    await resolver.close()


async def test_saved_answers_are_believed_but_checked():
    async with name_servers({"zone": {"a.test": (PUBLIC,)}}) as (server,):
        clock = VirtualClock()
        first = resolver_of(server, clock=clock)
        await first.resolve("a.test")
        answer = first.cached("a.test")
        known = answer.host, answer.addresses, clock.now() + 2 * MOST_TTL_S
        saved = [known, ("evil.test", ("127.0.0.1",), clock.now() + 100), ("old.test", (PUBLIC,), clock.now())]
        await first.close()

        second = resolver_of(server, clock=clock)
        second.load(saved)
        assert second.cached("evil.test") is None and second.cached("old.test") is None
        assert second.cached("a.test").addresses == (PUBLIC,)
        assert second.cached("a.test").expires_at == clock.now() + MOST_TTL_S
        assert server.asked("a.test") == 1
        await second.close()


async def test_closing_ends_those_who_wait():
    async with name_servers({"says": "nothing"}) as (server,):
        resolver = resolver_of(server)
        waiting = asyncio.ensure_future(resolver.resolve("a.test"))
        await asyncio.sleep(0)
        await resolver.close()
        await resolver.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("9.9.9.9", ServerAddress("9.9.9.9", 53)),
        ("9.9.9.9:5353", ServerAddress("9.9.9.9", 5353)),
        ("::1", ServerAddress("::1", 53)),
        ("[::1]:5353", ServerAddress("::1", 5353)),
    ],
)
def test_servers_are_addresses_with_or_without_a_port(given, meant):
    assert server_of(given) == meant


@pytest.mark.parametrize("given", ["", "dns.example", "9.9.9.9:0", "9.9.9.9:99999", "9.9.9.9:", "1.2.3", "[::1]53"])
def test_any_other_server_is_a_configuration_error(given):
    with pytest.raises(ConfigurationError, match=r"dns\.servers"):
        server_of(given)


# The registries of IANA, block by block: an address at each end.
SPECIAL = [
    "0.255.255.255", "10.255.255.255", "100.127.255.255", "127.255.255.255", "169.254.0.0", "172.31.255.255",
    "192.0.0.0", "192.0.0.8", "192.0.0.9", "192.0.0.170", "192.0.0.255", "192.0.2.255", "192.88.99.0", "192.88.99.1",
    "192.88.99.255", "192.168.255.255", "198.19.255.255", "198.51.100.1", "203.0.113.255", "239.255.255.255",
    "::1.2.3.4", "::ffff:93.184.216.34", "::ffff:0:1.2.3.4", "64:ff9b::a00:1", "64:ff9b::c0a8:101", "64:ff9b:1::1",
    "64:ff9b:1:ffff::5db8:d822", "100::1", "100:0:0:1::1", "2001::1", "2001:1ff:ffff::1", "2001:2::1", "2001:10::1",
    "2001:db8:ffff::1", "2002::1", "2002:5db8:d822::1", "3fff::1", "3fff:fff:ffff::1", "5f00::1", "4000::1",
    "1fff:ffff::1", "fd00::1", "febf::1", "fe80::1%lo", "2606:2800:220:1::1%1", "ff02::1", "", "x",
    "1.2.3", "010.0.0.1",
]  # fmt: skip
GLOBAL = [
    "1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
    "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0",
    "192.167.255.255", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2000::1", "2001:200::1", "2001:db7::1",
    "2001:db9::1", "2003::1", "3ffe:ffff::1", "3fff:1000::1", "64:ff9b::5db8:d822", SIX, PUBLIC,
]  # fmt: skip


@pytest.mark.parametrize("address", SPECIAL)
def test_what_the_registries_keep_from_the_public_is_not_public(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", GLOBAL)
def test_what_is_beside_it_is_public(address):
    assert is_public(address)


async def test_a_name_that_was_public_does_not_become_private():
    """A seed's name may be private from the beginning; later, somebody who owns the name would have it so."""
    zone = {"seed.test": (PUBLIC,), "a.intra.test": (PUBLIC,), "home.test": ("10.0.0.2",)}
    async with name_servers({"zone": zone}) as (server,):
        clock = VirtualClock()
        resolver = resolver_of(server, clock=clock, trusted=lambda host: True, private=["intra.test"])
        for name in ("seed.test", "a.intra.test"):
            assert (await resolver.resolve(name)).addresses == (PUBLIC,)
            server.zone[name] = ("10.0.0.1",)
        clock.advance(301)
        answer = await resolver.resolve("seed.test")
        assert answer.outcome is Outcome.ADDRESS_REFUSED and "was public before" in answer.detail
        assert (await resolver.resolve("a.intra.test")).addresses == ("10.0.0.1",)
        server.zone["seed.test"] = ("10.0.0.1", OTHER)
        clock.advance(700)
        assert (await resolver.resolve("seed.test")).addresses == (OTHER,)
        assert (await resolver.resolve("home.test")).addresses == ("10.0.0.2",)
        await resolver.close()


async def test_that_a_name_was_public_outlives_a_kill_before_anything_else_is_written(tmp_path):
    """It is noted before the answer is used."""
    async with name_servers({"zone": {"seed.test": (PUBLIC,), "a.intra.test": (PUBLIC,)}}) as (server,):
        for outcome in (Outcome.OK, Outcome.ADDRESS_REFUSED):
            resolver = resolver_of(server, trusted=lambda host: True, private=["intra.test"])
            with closing(Rests(tmp_path / "rests", PolitenessSection(), 1.0, 0.0, resumed=True)) as rests:
                resolver.remember(rests)
                assert (await resolver.resolve("seed.test")).outcome is outcome
                assert (await resolver.resolve("a.intra.test")).ok
                server.zone.update(dict.fromkeys(server.zone, ("127.0.0.1",)))
                await resolver.close()


async def test_that_a_name_was_public_outlives_a_restart():
    async with name_servers({"zone": {"seed.test": ("127.0.0.1",)}}) as (server,):
        clock = VirtualClock()
        resolver = resolver_of(server, clock=clock, trusted=lambda host: True)
        resolver.load([("seed.test", (PUBLIC,), clock.now() - 1)])
        assert (await resolver.resolve("seed.test")).outcome is Outcome.ADDRESS_REFUSED
        await resolver.close()
