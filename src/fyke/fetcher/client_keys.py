"""Can this client certificate be shown, and its key be opened?

`access` asks for each `[[site]]` table when a crawl begins. Otherwise libcurl would report the fault at the first host
that wants the certificate, as that host's, and OpenSSL would ask the terminal for a missing password, and wait.

Invariant: nobody is asked for a password, and no password is in a message.
"""

import ssl
from pathlib import Path

_CERTIFICATE = "CERTIFICATE-----"
_PRIVATE_KEY = "PRIVATE KEY-----"


def why_unusable(certificate: str, key: str, password: str) -> str:
    """Return what is wrong with the PEM files `certificate` and `key` (empty: in the same file), and what to do about
    it; empty if nothing is wrong. Raises OSError or ValueError if one cannot be read, or is not UTF-8."""
    key_file = key or certificate
    asked = False

    def given_password() -> str:
        nonlocal asked
        asked = True
        return password

    if _CERTIFICATE not in Path(certificate).read_text(encoding="utf-8-sig"):
        return f"{certificate} holds no certificate in PEM form"
    if _PRIVATE_KEY not in Path(key_file).read_text(encoding="utf-8-sig"):
        elsewhere = "" if key else ": name its file with key ="
        return f"{key_file} holds no private key in PEM form{elsewhere}"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key_file, given_password)
    except (ssl.SSLError, ValueError) as error:  # ValueError: a password that is longer than OpenSSL takes
        if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
            return f"{key_file} is not the key of {certificate}: name the certificate that belongs to it"
        if asked and not password:
            return f"{key_file} has a password: write where that is, key_password = env:NAME or file:PATH"
        if asked:
            return f"{key_file} cannot be opened: the password that key_password names is wrong"
        return f"{certificate} and {key_file} cannot be read as a certificate and its key, in PEM form"
    return ""
