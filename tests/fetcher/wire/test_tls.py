"""What TLS may cost the loop, and whom it trusts."""

import pytest
from tests.fetcher.wire.conftest import LOCAL, Client, listening, tls

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
