"""Certificates as large as a test wants them: of names without end, which are what they cost most."""

import datetime
import ssl
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

BEGIN, END = datetime.datetime(2020, 1, 1), datetime.datetime(2060, 1, 1)
NAME_BYTES = 3  # of a name of one letter


class Certificates:
    """An authority, whose own certificate is at `ca_file`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        self.ca_file = str(folder / "authority.pem")
        Path(self.ca_file).write_bytes(self._signed(self._name, ca=True).public_bytes(Encoding.PEM))

    def _signed(self, subject: x509.Name, names: Iterable[x509.GeneralName] = (), *, ca: bool) -> x509.Certificate:
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name)
        builder = builder.public_key(self._key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(BEGIN).not_valid_after(END)
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def server(self, hosts: Iterable[str], size_bytes: int = 0) -> ssl.SSLContext:
        """For a server at `hosts`, names or addresses, whose certificate has at least `size_bytes`."""
        names: list[x509.GeneralName] = [
            x509.IPAddress(ip_address(host)) if host[-1].isdigit() else x509.DNSName(host) for host in hosts
        ]
        names += [x509.DNSName("a")] * (size_bytes // NAME_BYTES)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
        path = self._folder / f"server-{size_bytes}.pem"
        key = self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path.write_bytes(self._signed(subject, names, ca=False).public_bytes(Encoding.PEM) + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context
