"""Client certificates and their keys are tried when a crawl begins, not at the first host that wants them."""

from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from fyke.core.errors import ConfigurationError
from fyke.core.site import SiteSection
from fyke.fetcher.access import Sites

PASSWORD, TOKEN = "correct-horse-battery", "tok-3nN0x8s9"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", PASSWORD)
    monkeypatch.setenv("TOKEN", TOKEN)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a client certificate, its key, the same behind a password, and others that do not fit."""
    folder = tmp_path_factory.mktemp("keys")
    authority = trustme.CA()
    mine, other = authority.issue_cert("me@example.org"), authority.issue_cert("you@example.org")
    mine.cert_chain_pems[0].write_to_path(folder / "mine.crt")
    mine.private_key_pem.write_to_path(folder / "mine.key")
    mine.private_key_and_cert_chain_pem.write_to_path(folder / "both.pem")
    other.private_key_pem.write_to_path(folder / "other.key")
    private = load_pem_private_key(mine.private_key_pem.bytes(), None)
    for kind, name in ((PrivateFormat.PKCS8, "locked.key"), (PrivateFormat.TraditionalOpenSSL, "old.key")):
        (folder / name).write_bytes(
            private.private_bytes(Encoding.PEM, kind, BestAvailableEncryption(PASSWORD.encode()))
        )
    (folder / "junk").write_text("this is no PEM\n")
    torn = (folder / "mine.crt").read_text().splitlines()
    (folder / "torn.crt").write_text("\n".join([*torn[:3], "####", *torn[3:]]))
    return folder


@pytest.mark.parametrize(
    ("certificate", "key", "password", "words"),
    [
        ("mine.crt", "locked.key", "", ["locked.key", "key_password"]),
        ("mine.crt", "old.key", "", ["old.key", "key_password"]),
        ("mine.crt", "locked.key", "env:TOKEN", ["locked.key", "key_password", "wrong"]),
        ("mine.crt", "old.key", "env:TOKEN", ["old.key", "key_password", "wrong"]),
        ("junk", "", "", ["junk", "no certificate", "PEM"]),
        ("mine.crt", "junk", "", ["junk", "no private key", "PEM"]),
        ("mine.crt", "", "", ["mine.crt", "no private key", "key ="]),
        ("mine.key", "", "", ["mine.key", "no certificate"]),
        ("mine.crt", "other.key", "", ["other.key", "mine.crt", "is not the key of"]),
        ("torn.crt", "mine.key", "", ["torn.crt", "cannot be read"]),
    ],
)
def test_a_certificate_that_cannot_be_used_is_told_of_at_once(
    keys: Path, capfd: pytest.CaptureFixture[str], certificate: str, key: str, password: str, words: list[str]
) -> None:
    """In one line, without a secret, and nobody is asked for a password at the terminal."""
    with pytest.raises(ConfigurationError) as raised:
        Sites([_with_key(keys, certificate, key, password)])
    said = str(raised.value)
    assert all(word in said for word in words), said
    assert "\n" not in said and TOKEN not in said and PASSWORD not in said
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("certificate", "key", "password"),
    [
        ("mine.crt", "mine.key", ""),
        ("mine.crt", "mine.key", "env:TOKEN"),  # it needs none
        ("both.pem", "", ""),
        ("mine.crt", "locked.key", "env:PASSWORD"),
        ("mine.crt", "old.key", "env:PASSWORD"),
    ],
)
def test_a_certificate_that_fits_its_key_is_taken(keys: Path, certificate: str, key: str, password: str) -> None:
    access = Sites([_with_key(keys, certificate, key, password)]).access("https://a.example/")
    assert access.certificate == str(keys / certificate)


def _with_key(folder: Path, certificate: str, key: str, password: str) -> SiteSection:
    return SiteSection(
        match="https://a.example/",
        certificate=str(folder / certificate),
        key=str(folder / key) if key else "",
        key_password=password,
    )
