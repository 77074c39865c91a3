"""What TLS may cost the loop, and whom it trusts."""

import ssl

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from tests.fetcher.wire.conftest import LOCAL, Client, listening, saying, tls, web

from fyke.core.outcomes import Outcome
from fyke.core.site import SiteSection
from fyke.fetcher.addresses import PROXIED


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
