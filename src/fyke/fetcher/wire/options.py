"""What every libcurl handle is told once: our limits, which certificates to trust, and to change nothing.

`CurlClient` sets these options on each new handle before the dialect's own. Invariant: bytes are not decoded or
rewritten, redirects are not followed, and the only server ever connected to is the address we give, even if the
environment names a proxy.
"""

import re
import ssl
from collections.abc import Iterable
from os import fsencode
from pathlib import Path
from typing import Any

import certifi
import pycurl

from fyke.core.config import FetchSection
from fyke.core.errors import ConfigurationError
from fyke.fetcher.wire.request import Option
from fyke.fetcher.wire.transfer import HTTP_VERSION

BUFFER_BYTES = 32 << 10  # read at a time: each byte of an HTTP/2 head may stand for 4 KB
LEAST_RATE_BYTES_S = 64  # a download that is slower for `stall_s` is broken off
CIPHERS = "DEFAULT:!kDHE"  # with DHE a server chooses the size of the numbers: 10,000 bits take a second
# The same in TLS 1.3. OpenSSL can take groups away from its own list since 3.5, and has no newer ones to keep before.
_GROUPS_SINCE_3_5 = "DEFAULT:-ffdhe2048:-ffdhe3072:-ffdhe4096:-ffdhe6144:-ffdhe8192"
_GROUPS_BEFORE = "X25519:P-256:X448:P-521:P-384"
_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS
)


def constant_options(config: FetchSection) -> list[Option]:
    """Return the options of every handle. Raises ConfigurationError if `ca_file` cannot be read."""
    return [
        (pycurl.NOSIGNAL, 1),
        (pycurl.PROXY, ""),
        (pycurl.NOPROXY, "*"),
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS | pycurl.PROTO_FTP | pycurl.PROTO_GOPHER),
        (pycurl.FOLLOWLOCATION, 0),
        (pycurl.PATH_AS_IS, 1),
        (pycurl.HTTP_CONTENT_DECODING, 0),
        (pycurl.HTTP_TRANSFER_DECODING, 0),
        (pycurl.TCP_NODELAY, 1),
        (pycurl.DNS_CACHE_TIMEOUT, 0),  # libcurl scans the cache after each request, and we give addresses
        (pycurl.BUFFERSIZE, BUFFER_BYTES),
        (pycurl.CONNECTTIMEOUT_MS, int(config.connect_timeout_s * 1000)),
        (pycurl.TIMEOUT_MS, int(config.timeout_s * 1000)),
        (pycurl.LOW_SPEED_LIMIT, LEAST_RATE_BYTES_S),
        (pycurl.LOW_SPEED_TIME, config.stall_s),
        (pycurl.FTP_RESPONSE_TIMEOUT, config.stall_s),
        (pycurl.HTTP_VERSION, HTTP_VERSION),
        *_trust(config),
    ]


def _trust(config: FetchSection) -> Iterable[Option]:
    """Yield the options by which TLS is spoken with servers and proxies."""
    yield from ((pycurl.SSL_CIPHER_LIST, CIPHERS), (pycurl.PROXY_SSL_CIPHER_LIST, CIPHERS))
    yield from _groups(pycurl.version)
    peer, host = (1, 2) if config.verify_tls else (0, 0)
    yield from ((pycurl.SSL_VERIFYPEER, peer), (pycurl.PROXY_SSL_VERIFYPEER, peer))
    yield from ((pycurl.SSL_VERIFYHOST, host), (pycurl.PROXY_SSL_VERIFYHOST, host))
    bundle = fsencode(certificate_bundle(config.ca_file))
    if config.verify_tls:
        yield from ((pycurl.CAINFO, bundle), (pycurl.PROXY_CAINFO, bundle))


def _groups(version: str) -> Iterable[Option]:
    """Yield the option for groups of keys, by what libcurl says of itself; libcurl has none for proxies."""
    if found := re.search(r"\bOpenSSL/(\d+)\.(\d+)", version):
        since_3_5 = (int(found[1]), int(found[2])) >= (3, 5)
        yield pycurl.SSL_EC_CURVES, _GROUPS_SINCE_3_5 if since_3_5 else _GROUPS_BEFORE


def certificate_bundle(ca_file: str) -> str:
    """Return the PEM file of certificates to trust: `ca_file`, otherwise the system's, otherwise certifi's.

    Raises ConfigurationError if `ca_file` is given and is not a file of certificates.
    """
    if ca_file:
        try:
            ssl.create_default_context(cafile=ca_file)
        except OSError as error:
            raise ConfigurationError(
                f"fetch.ca_file = {ca_file!r} holds no certificates ({error}): name a PEM file"
            ) from None
        return ca_file
    for path in (ssl.get_default_verify_paths().cafile, *_SYSTEM_BUNDLES):
        if path and Path(path).is_file():
            return path
    return certifi.where()


def session_cache() -> Any:
    """Return a new share of TLS sessions between handles."""
    cache = pycurl.CurlShare()
    cache.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_SSL_SESSION)
    return cache
