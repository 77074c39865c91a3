"""A server of TLS 1.3 that speaks beyond what libraries let one say: messages of the protocol's own, without end.

It knows one cipher suite (AES-128-GCM with SHA-256) and one group (X25519), and takes what the client says on trust
(RFC 8446). It serves from threads, since the loop of a test is what it means to hold.
"""

import hmac
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

HANDSHAKE, DATA = 22, 23  # types of content
X25519, KEY_SHARE = 29, 51


def message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + len(body).to_bytes(3) + body


TICKETS = message(4, bytes.fromhex("00010000 00000001 00 0001 78 0000")) * 800
NEW_KEY = message(24, b"\0")


class Records:
    """What one side sends, under one secret after the other."""

    def __init__(self, secret: bytes) -> None:
        self.use(secret)

    def use(self, secret: bytes) -> None:
        self.secret, self._number = secret, 0
        self._cipher, self._iv = AESGCM(expanded(secret, b"key", b"", 16)), expanded(secret, b"iv", b"", 12)

    def record(self, data: bytes, kind: int) -> bytes:
        head = struct.pack(">BHH", DATA, 0x0303, len(data) + 17)
        nonce = int.from_bytes(self._iv) ^ self._number
        self._number += 1
        return head + self._cipher.encrypt(nonce.to_bytes(12), data + bytes([kind]), head)

    def tickets(self) -> bytes:
        return self.record(TICKETS, HANDSHAKE)

    def new_keys(self) -> bytes:
        """A hundred of them, one after the other."""
        said = b""
        for _ in range(100):
            said += self.record(NEW_KEY, HANDSHAKE)
            self.use(expanded(self.secret, b"traffic upd", b"", 32))
        return said


def extracted(salt: bytes, secret: bytes) -> bytes:
    return hmac.digest(salt, secret, sha256)


def expanded(secret: bytes, label: bytes, context: bytes, size: int) -> bytes:
    label = b"tls13 " + label
    info = struct.pack(">HB", size, len(label)) + label + bytes([len(context)]) + context
    return hmac.digest(secret, info + b"\1", sha256)[:size]


def public_key_of(hello: bytes) -> tuple[bytes, bytes]:
    """The session id of a client's hello, and its key for X25519."""
    at = 4 + 2 + 32
    session = hello[at : at + 1 + hello[at]]
    at += len(session)
    at += 2 + int.from_bytes(hello[at : at + 2])
    at += 1 + hello[at] + 2
    while int.from_bytes(hello[at : at + 2]) != KEY_SHARE:
        at += 4 + int.from_bytes(hello[at + 2 : at + 4])
    at += 6
    while int.from_bytes(hello[at : at + 2]) != X25519:
        at += 4 + int.from_bytes(hello[at + 2 : at + 4])
    return session, hello[at + 4 : at + 36]


def greeted(client: socket.socket, issued) -> Records:
    """Shake hands by the certificate `issued`."""
    head = client.recv(5, socket.MSG_WAITALL)
    hello = client.recv(int.from_bytes(head[3:]), socket.MSG_WAITALL)
    session, theirs = public_key_of(hello)
    mine = X25519PrivateKey.generate()
    share = struct.pack(">HHHH", KEY_SHARE, 36, X25519, 32) + mine.public_key().public_bytes_raw()
    extensions = bytes.fromhex("002b00020304") + share
    answer = message(2, b"\3\3" + os.urandom(32) + session + b"\x13\1\0" + len(extensions).to_bytes(2) + extensions)
    said = hello + answer
    empty = sha256(b"").digest()
    agreed = extracted(
        expanded(extracted(bytes(32), bytes(32)), b"derived", empty, 32),
        mine.exchange(X25519PublicKey.from_public_bytes(theirs)),
    )
    records = Records(expanded(agreed, b"s hs traffic", sha256(said).digest(), 32))
    flight = certified(said, issued)
    said += flight
    finished = hmac.digest(expanded(records.secret, b"finished", b"", 32), sha256(said).digest(), sha256)
    flight += message(20, finished)
    client.sendall(b"\x16\3\3" + len(answer).to_bytes(2) + answer + records.record(flight, HANDSHAKE))
    main = extracted(expanded(agreed, b"derived", empty, 32), bytes(32))
    records.use(expanded(main, b"s ap traffic", sha256(said + message(20, finished)).digest(), 32))
    client.recv(65536)  # that the client has finished, and maybe its request
    return records


def certified(said: bytes, issued) -> bytes:
    """The messages that say who the server is, after what was `said`."""
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    leaf = x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
    der = leaf.public_bytes(serialization.Encoding.DER)
    entry = len(der).to_bytes(3) + der + b"\0\0"
    flight = message(8, b"\0\0") + message(11, b"\0" + len(entry).to_bytes(3) + entry)
    text = b" " * 64 + b"TLS 1.3, server CertificateVerify\0" + sha256(said + flight).digest()
    signature = key.sign(text, ec.ECDSA(hashes.SHA256()))
    return flight + message(15, b"\4\3" + len(signature).to_bytes(2) + signature)


@contextmanager
def speaking(issued, script: Callable[[socket.socket, Records], None]) -> Iterator[int]:
    """The port of a server that plays `script` to each who has shaken hands."""

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):
            script(client, greeted(client, issued))

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                clients.append(client)
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    clients: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        threads = threading.Thread(target=accept, daemon=True)
        threads.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            threads.join()
            for client in clients:
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)
