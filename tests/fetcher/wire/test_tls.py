"""What TLS may cost the loop, and whom it trusts."""

import asyncio
import ssl

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from tests.fetcher.wire.conftest import LOCAL, Client, listening, saying, tls, web

from certificates import Certificates
from fyke.core.outcomes import Outcome
from fyke.core.site import SiteSection
from fyke.fetcher.addresses import PROXIED
from fyke.fetcher.wire import curl, line
from fyke.fetcher.wire.handshakes import Handshakes
from fyke.fetcher.wire.line import MOST_ALONE, STARTS

HOSTS = [f"h{number}.test" for number in range(3 * MOST_ALONE)]
SMALL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


@pytest.mark.parametrize("behind", ["server", "proxy"])
async def test_no_key_is_agreed_on_whose_size_the_server_chooses(authority, behind):
    """DHE in TLS 1.2: a modulus of 10,000 bits takes a second of the loop."""
    issuer, ca_file = authority
    offered = []

    async def serve(reader, writer):
        offered.extend(name for name, _, _ in writer.get_extra_info("ssl_object").shared_ciphers())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    context = tls(issuer, "site.test" if behind == "server" else LOCAL)
    context.set_ciphers("ALL:@SECLEVEL=0")
    async with listening(serve, ssl=context) as port:
        if behind == "server":
            async with Client(ca_file=ca_file) as client:
                answer = await client.get(f"https://site.test:{port}/")
        else:
            proxy = SiteSection(match="*", proxy=f"https://{LOCAL}:{port}")
            async with Client(ca_file=ca_file, site=proxy) as client:
                answer = await client.get("http://site.test/", f"{PROXIED}site.test")
        assert answer.outcome is Outcome.OK, answer.detail
    assert any(name.startswith("ECDHE-") for name in offered)
    assert not [name for name in offered if name.startswith(("DHE-", "ADH-"))]


@pytest.mark.parametrize(
    ("group", "taken"),
    [
        *((f"ffdhe{bits}", False) for bits in (2048, 3072, 4096, 6144, 8192)),
        *((curve, True) for curve in ("X25519", "prime256v1", "secp384r1", "secp521r1", "X448")),
    ],
)
async def test_nor_is_one_in_tls_1_3(authority, group, taken):
    """There the server may ask for a group with numbers of 8,192 bits, which take a tenth of a second."""
    issuer, ca_file = authority
    context = tls(issuer, "site.test", "http/1.1")
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_ecdh_curve(group)
    async with web(saying(SMALL), ssl=context) as server, Client(ca_file=ca_file) as client:
        answer = await client.get(server.url().replace("http:", "https:"))
    assert answer.outcome is (Outcome.OK if taken else Outcome.TLS_FAILED), answer.detail


async def test_files_and_passwords_have_names_of_any_letters(authority, tmp_path, monkeypatch):
    issuer, _ = authority
    monkeypatch.setenv("KEY", "hüntersecret")
    folder = tmp_path / "jürgen"
    folder.mkdir()
    issuer.cert_pem.write_to_path(folder / "ca.pem")
    mine = issuer.issue_cert("me@example.org")
    mine.cert_chain_pems[0].write_to_path(folder / "mé.pem")
    (folder / "kéy.pem").write_bytes(encrypted(mine.private_key_pem.bytes(), "hüntersecret"))
    keys = {"certificate": str(folder / "mé.pem"), "key": str(folder / "kéy.pem"), "key_password": "env:KEY"}
    context = tls(issuer, "site.test", "http/1.1")
    issuer.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    async with web(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"), ssl=context) as server:
        url = server.url().replace("http:", "https:")
        async with Client(ca_file=str(folder / "ca.pem"), site=SiteSection(match=url, **keys)) as client:
            answer = await client.get(url)
            assert answer.outcome is Outcome.OK, answer.detail


def encrypted(key: bytes, password: str) -> bytes:
    private = load_pem_private_key(key, None)
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))


class Counting:
    """Answers all requests but those for /silent; counts its connections."""

    def __init__(self):
        self.now = self.most = self.all = self.resumed = 0

    async def serve(self, reader, writer):
        self.now, self.all = self.now + 1, self.all + 1
        self.most = max(self.most, self.now)
        self.resumed += writer.get_extra_info("ssl_object").session_reused
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await asyncio.sleep(0.02)
                if not head.startswith(b"GET /silent"):
                    writer.write(SMALL)
        except asyncio.IncompleteReadError:
            pass
        finally:
            self.now -= 1
            writer.close()


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
async def test_large_certificates_are_in_memory_few_at_a_time_and_not_kept(tmp_path, version):
    certificates, server = Certificates(tmp_path), Counting()
    context = certificates.server(HOSTS, 90_000)
    context.maximum_version = ssl.TLSVersion[version]
    async with (
        listening(server.serve, ssl=context) as port,
        Client(ca_file=certificates.ca_file) as client,
    ):
        urls = [f"https://{host}:{port}/" for host in HOSTS]
        for answer in await client.get_all(urls) + await client.get_all(urls):
            assert answer.outcome is Outcome.OK, answer.detail
    assert server.most <= MOST_ALONE
    assert server.all == 2 * len(HOSTS)


async def test_a_server_with_a_large_certificate_that_is_silent_holds_up_nobody(tmp_path, monkeypatch):
    for module in (curl, line):
        monkeypatch.setattr(module, "ALONE_S", 0.2)
    certificates, server, calm = Certificates(tmp_path), Counting(), Counting()
    async with (
        listening(server.serve, ssl=certificates.server(HOSTS, 90_000)) as port,
        listening(calm.serve, ssl=certificates.server(["site.test"])) as calm_port,
        Client(ca_file=certificates.ca_file, timeout_s=30) as client,
    ):
        silent = [asyncio.ensure_future(client.get(f"https://{host}:{port}/silent")) for host in HOSTS[:MOST_ALONE]]
        while server.now < MOST_ALONE:
            await asyncio.sleep(0.01)
        waiting = asyncio.ensure_future(client.get(f"https://{HOSTS[-1]}:{port}/"))
        assert (await client.get(f"https://site.test:{calm_port}/")).outcome is Outcome.OK
        assert not waiting.done()
        assert (await waiting).outcome is Outcome.OK
    ends = {answer.outcome for answer in await asyncio.gather(*silent)}
    assert Outcome.STALLED in ends and ends <= {Outcome.STALLED, Outcome.BROKEN_OFF}


@pytest.mark.parametrize(("hosts", "kept"), [(24, 24), (10_000, 17)])
async def test_where_hosts_are_many_fewer_connections_are_kept_than_fit(tmp_path, monkeypatch, hosts, kept):
    """They would be closed before their hosts are visited again."""
    monkeypatch.setattr(Handshakes, "room", 34)
    certificates, server = Certificates(tmp_path), Counting()
    async with (
        listening(server.serve, ssl=certificates.server(HOSTS)) as port,
        Client(ca_file=certificates.ca_file) as client,
    ):
        client.curl.room(hosts)
        for host in HOSTS:
            assert (await client.get(f"https://{host}:{port}/")).outcome is Outcome.OK
        await asyncio.sleep(0.1)
        assert server.now == kept


async def test_few_requests_begin_in_one_turn_of_the_loop(authority):
    issuer, ca_file = authority
    calm = Counting()
    async with (
        listening(calm.serve, ssl=tls(issuer, "site.test")) as port,
        Client(ca_file=ca_file, connections=200) as client,
    ):
        curl, begun, known = client.curl, [], set()
        act = curl._act

        def noted(fd, selected, **turn):
            begun.append(len(curl._active.keys() - known))
            known.update(curl._active)
            act(fd, selected, **turn)

        curl._act = noted
        answers = await client.get_all([f"https://site.test:{port}/{number}" for number in range(100)])
        assert {answer.outcome for answer in answers} == {Outcome.OK}
    assert max(begun) <= STARTS and sum(begun) >= 90
