"""What a crawl has finished is copied, each file once, compared; what is damaged or cut is noticed."""

import fcntl
import hmac
import json
import os
import shutil
import socket
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from crawl.runs import crawl, settings, wait_until
from crawl.runs import fyke_here as fyke
from crawl.small_site import small_site
from disks import grow, small_disk
from ports import free_port

CLOSED = {"fyke.toml", "export/pages.csv"}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crawl")
    with small_site(pages=20) as site:
        config = settings(folder, store={"warc_bytes": 10_000, "table_rows": 8})
        assert crawl(folder / "there", config, site.url).status == 0
    assert fyke("export", str(folder / "there"), "--to", "csv").returncode == 0
    return folder / "there"


def copied(crawled: Path, target: str) -> dict[str, int]:
    done = fyke("copy", str(crawled), target, "--json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_crawl_is_not_copied_into_itself(crawled: Path) -> None:
    for target in (crawled, crawled / "warc" / "copy"):
        done = fyke("copy", str(crawled), str(target))
        assert done.returncode == 3 and "is inside the crawl: name another folder" in done.stderr
    assert not (crawled / "warc" / "copy").exists()


def test_into_a_folder(crawled: Path, tmp_path: Path) -> None:
    there = shutil.copytree(crawled, tmp_path / "there")
    target = tmp_path / "deep" / "copy"
    (there / "warc" / "fyke-there-00099.warc.gz").write_bytes(b"open still")
    (there / "export" / "markdown.part").mkdir()
    (there / "export" / "markdown.part" / "a.md").write_text("under way")
    first = copied(there, str(target))
    names = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert {name for name in names if name.endswith(".xxh3")} == {f"{n}.xxh3" for n in names if not n.endswith(".xxh3")}
    assert first["new"] == first["files"] == len(names) / 2 and names >= CLOSED
    assert not any("00099" in name or "state" in name or ".part" in name for name in names)
    for name in names - {"fyke.toml"}:
        if not name.endswith(".xxh3"):
            assert (target / name).read_bytes() == (there / name).read_bytes()
    assert copied(there, str(target))["new"] == 0
    (target / "export" / "pages.csv.xxh3").unlink()  # as if it was killed before
    next(target.glob("warc/*.warc.gz")).write_bytes(b"cut")
    (there / "extracted").mkdir()
    (there / "extracted" / "new.jsonl").write_text("{}\n")
    assert copied(there, str(target))["new"] == 3
    victim = next(there.glob("tables/*.parquet"))
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    done = fyke("copy", str(there), str(tmp_path / "other"))
    assert done.returncode == 1 and victim.name in done.stderr and "--repair" in done.stderr
    assert len(done.stderr.splitlines()) == 1 and not (tmp_path / "other" / "tables" / victim.name).exists()


def other_crawl(folder: Path) -> Path:
    """Another crawl of the same site, in a folder of the same name as that of `crawled`."""
    with small_site(pages=20) as site:
        config = settings(folder, store={"warc_bytes": 10_000, "table_rows": 8})
        assert crawl(folder / "there", config, site.url).status == 0
    return folder / "there"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(crawled: Path, target: Path | str, *words: str) -> None:
    """It is told in a line, and the target is as it was."""
    before = contents(target) if isinstance(target, Path) else {}
    done = fyke("copy", str(crawled), str(target))
    assert done.returncode == 3 and len(done.stderr.splitlines()) == 1, done
    assert all(word in done.stderr for word in (str(target), *words, "name another folder")), done.stderr
    assert not isinstance(target, Path) or contents(target) == before


def test_what_is_of_another_crawl_stays(crawled: Path, tmp_path: Path) -> None:
    """Whether they closed an archive file, only a table of pages, or nothing yet when they were copied."""
    other, target = other_crawl(tmp_path), tmp_path / "copy"
    refused(crawled, other, "is the directory of a crawl")
    copied(other, str(target))
    (target / "fyke.toml.xxh3#1").write_bytes(b"half")
    refused(crawled, target, "holds another crawl (warc/fyke-there-00000.warc.gz")
    renamed = next(iter(sorted(target.glob("warc/*.warc.gz"))))
    for path in sorted((target / "warc").iterdir()):
        path.rename(path.with_name(path.name.replace("-there-", "-elsewhere-")))
    refused(crawled, target, "holds another crawl (warc/fyke-elsewhere-00000.warc.gz")
    assert not renamed.exists()
    shutil.rmtree(target / "warc")
    refused(crawled, target, "holds another crawl (tables/pages-00000.parquet")
    shutil.rmtree(target / "tables")
    refused(crawled, target, "holds another crawl (fyke.toml")
    (target / "fyke.toml").write_text("[mine]\nnot = 'yours'\n")
    refused(crawled, target, "holds another crawl (fyke.toml")
    copied(other, str(tmp_path / "second"))


def test_a_twin_that_went_on_by_itself_is_another(crawled: Path, tmp_path: Path) -> None:
    """Its first files are those of the crawl that it was."""
    twin, target = shutil.copytree(crawled, tmp_path / "there"), tmp_path / "copy"
    copied(crawled, str(target))
    last = max(twin.glob("warc/*.warc.gz"))
    last.write_bytes(next(iter(sorted(twin.glob("warc/*.warc.gz")))).read_bytes())
    (twin / "warc" / f"{last.name}.xxh3").write_text("XXH3 of another")
    refused(twin, target, f"holds another crawl (warc/{last.name}")


def test_a_copy_is_whole_without_state(crawled: Path, tmp_path: Path) -> None:
    """A check says that it has none, and finds faults as in a crawl; a copy may also be moved."""
    target, moved = tmp_path / "copy", tmp_path / "moved"
    there = shutil.copytree(crawled, tmp_path / "there")
    copied(there, str(target))
    checked = fyke("check", str(target))
    assert checked.returncode == 0 and f"{target}: a copy, without the crawl's state; " in checked.stdout, checked
    assert fyke("move", str(target), str(moved)).returncode == 0
    assert copied(there, str(moved))["new"] == 0
    first = min(moved.glob("warc/*.warc.gz"))
    first.write_bytes(first.read_bytes()[:-1])
    checked = fyke("check", str(moved))
    assert checked.returncode == 1 and first.name in checked.stdout
    shutil.rmtree(there / "state")
    assert "the state is gone" in fyke("check", str(there)).stdout


def test_a_crawl_that_goes_on_is_copied_to_its_own_copy(crawled: Path, tmp_path: Path) -> None:
    """What the copy had was less, or was cut, and `deny` may be edited."""
    there, target = shutil.copytree(crawled, tmp_path / "there"), tmp_path / "copy"
    asked = there / "fyke.toml"
    copied(there, str(target))
    asked.write_text(asked.read_text().replace("deny = []", 'deny = ["x"]'))
    assert copied(there, str(target))["new"] == 1
    for lacking in ("warc/*-0000[1-9].*", "warc/*", "[wt]a*/*"):
        for path in target.glob(lacking):
            path.unlink()
        assert copied(there, str(target))["new"] > 0
        assert copied(there, str(target))["new"] == 0
    first = min(target.glob("warc/*.warc.gz"))
    first.write_bytes(first.read_bytes()[:-100])
    first.with_name(f"{first.name}.xxh3").unlink()  # killed before it was written
    assert copied(there, str(target))["new"] == 1


def test_what_a_killed_copy_left_goes(crawled: Path, tmp_path: Path) -> None:
    """A store of files gathers what comes under another name, with a number behind it."""
    target = tmp_path / "copy"
    copied(crawled, str(target))
    archive = next(target.glob("warc/*.warc.gz"))
    left = [archive.with_name(f"{archive.name}#1"), target / "fyke.toml.xxh3#12"]
    others = [archive.with_name("mine.warc.gz#1"), target / "fyke.toml#a"]
    for path in (*left, *others):
        path.write_bytes(b"half")
    with holding(target):  # another copy runs
        copied(crawled, str(target))
        assert all(path.exists() for path in left)
    copied(crawled, str(target))
    assert not any(path.exists() for path in left) and all(path.exists() for path in others)


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """As a copy holds the folder that it writes into."""
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    yield
    os.close(descriptor)


@pytest.mark.parametrize("target", ["foo://bucket/x", "s3://a b/x", "{file}", "s3://none-of-ours/x"])
def test_mistakes_are_one_line(target: str, crawled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    secrets = {"AWS_ACCESS_KEY_ID": "who", "AWS_SECRET_ACCESS_KEY": "a-secret", "AWS_ENDPOINT": "http://127.0.0.1:1"}
    for name, value in {**secrets, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "x"}.items():
        monkeypatch.setenv(name, value)
    done = fyke("copy", str(crawled), target.format(file=tmp_path / "file"))
    assert done.returncode in (2, 3) and done.stderr.count("\n") == 1 and "a-secret" not in done.stderr, done.stderr


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of moto's S3 on this machine, where that is installed."""
    server = shutil.which("moto_server")
    if server is None:
        pytest.skip("no moto here: pip install 'moto[server,s3]'")
    port = free_port()
    with _running([server, "-p", str(port)], port):
        urlopen(Request(f"http://127.0.0.1:{port}/pond", method="PUT"), timeout=15).close()
        for name, value in {
            "AWS_ENDPOINT": f"http://127.0.0.1:{port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "y",
            "AWS_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        yield "s3://pond/crawls/there"


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A container of azurite's on this machine, where that is installed."""
    server = shutil.which("azurite-blob")
    if server is None:
        pytest.skip("no azurite here: npm install --global azurite")
    port = free_port()
    options = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--silent", "--disableTelemetry"]
    memory = ["--inMemoryPersistence", "--skipApiVersionCheck"]
    with _running([server, *options, *memory], port):
        _azure(port, "PUT", "restype:container").close()
        monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
        monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", f"http://127.0.0.1:{port}")
        yield "az://pond/crawls/there"


def _azure(port: int, method: str, *asked: str) -> Any:
    """The answer to a request for the container `pond`, signed with the key that every azurite has; `asked`: its
    query as it is signed, sorted."""
    key = b64decode("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")
    fields = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    path = "/devstoreaccount1/pond"
    lines = [method, *[""] * 11, *(f"{name}:{value}" for name, value in fields.items()), f"/devstoreaccount1{path}"]
    signature = b64encode(hmac.digest(key, "\n".join([*lines, *asked]).encode(), "sha256")).decode()
    query = "&".join(one.replace(":", "=") for one in asked)
    fields |= {"Authorization": f"SharedKey devstoreaccount1:{signature}", "Content-Length": "0"}
    return urlopen(Request(f"http://127.0.0.1:{port}{path}?{query}", method=method, headers=fields), timeout=15)


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    """With the server of `command`, which listens at `port`."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: _listens(port) or process.poll() is not None)
            assert process.poll() is None
            yield
        finally:
            process.kill()


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return not asking.connect_ex(("127.0.0.1", port))


def test_into_a_bucket(crawled: Path, bucket: str) -> None:
    first = copied(crawled, bucket)
    assert first["new"] == first["files"] > 5
    assert copied(crawled, bucket)["new"] == 0
    listing = urlopen(f"{os.environ['AWS_ENDPOINT']}/pond?list-type=2", timeout=15).read().decode()
    assert listing.count("<Key>crawls/there/") == 2 * first["files"]


def test_a_bucket_of_another_crawl(crawled: Path, bucket: str, tmp_path: Path) -> None:
    copied(other_crawl(tmp_path), bucket)
    refused(crawled, bucket, "holds another crawl (warc/fyke-there-00000.warc.gz")


def test_into_a_container(crawled: Path, container: str) -> None:
    first = copied(crawled, container)
    assert first["new"] == first["files"] > 5
    assert copied(crawled, container)["new"] == 0
    port = int(os.environ["AZURITE_BLOB_STORAGE_URL"].rpartition(":")[2])
    with _azure(port, "GET", "comp:list", "restype:container") as listing:
        assert listing.read().count(b"<Name>crawls/there/") == 2 * first["files"]


def test_a_disk_that_is_full_is_told_as_one(crawled: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "16k") as disk:
        done = fyke("copy", str(crawled), str(disk / "copy"))
        assert done.returncode == 4 and "free some space" in done.stderr and len(done.stderr.splitlines()) == 1
        grow(disk)
        assert copied(crawled, str(disk / "copy"))
