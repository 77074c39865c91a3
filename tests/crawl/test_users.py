"""An ordinary user, of whose crawl some files are another's, as after a run by root, or who has no home to write to."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from commands import in_process
from crawl.runs import crawl, settings
from crawl.small_site import SmallSite, small_site

NOBODY = 65534


@pytest.fixture(scope="module")
def made() -> Iterator[tuple[Path, SmallSite]]:
    """A crawl that can go on, below a folder that is everybody's."""
    with TemporaryDirectory(prefix="fyke-users-") as folder, small_site() as site:
        Path(folder).chmod(0o777)
        into = Path(folder) / "crawl"
        assert crawl(into, settings(into.parent), site.url, "--pages", "10").status == 0
        assert crawl(into, into / "fyke.toml", "--pages", "20").status == 0
        assert in_process("index", str(into)).status == 0
        assert in_process("block", str(into), "elsewhere.example").status == 0
        yield into, site


@pytest.fixture
def into(made: tuple[Path, SmallSite]) -> Iterator[Path]:
    """A copy of it, of the user."""
    copy = made[0].with_name("copy")
    shutil.copytree(made[0], copy)
    if not os.geteuid():
        for path in (copy, *copy.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    yield copy
    shutil.rmtree(copy)


def as_user(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """A command of an ordinary user; skips the test where that one cannot run Python."""
    other = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    python = [*([] if os.geteuid() else other), sys.executable]
    variables = {**os.environ, "HOME": "/nowhere", **environment}
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("needs setpriv (util-linux)")
    if subprocess.run([*python, "-c", "import fyke"], env=variables, capture_output=True, check=False).returncode:
        pytest.skip("an ordinary user cannot run this Python")
    command = [*python, "-m", "fyke", *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def withhold(path: Path) -> None:
    """Let it be another's; for root alone, else nobody's."""
    if not os.geteuid():
        os.chown(path, 0, 0)
    path.chmod(0o600 if not os.geteuid() else 0)


@pytest.mark.parametrize(
    ("pattern", "arguments"),
    [
        ("state/shard-0000/manifest*", ["crawl", "--pages", "25", "--into"]),
        ("state/shard-0000/manifest*", ["status"]),
        ("state/shard-0000/manifest*", ["check", "--repair"]),
        ("tables/pages*.parquet", ["links"]),
        ("warc/*.warc.gz", ["check", "--repair"]),
        ("warc/*.warc.gz.xxh3", ["check"]),
        ("tables/pages*.xxh3", ["check"]),
        ("tables/pages*.xxh3", ["report"]),
        ("tables/pages*.xxh3", ["copy"]),
        ("state/rests", ["check"]),
        ("state/rests", ["crawl", "--pages", "25", "--into"]),
        ("state/asked.json", ["status"]),
        ("fyke.toml", ["check"]),
        ("fyke.toml", ["status"]),
        ("index/state.json", ["search"]),
        ("index/engine*/meta.json", ["search"]),
    ],
)
def test_what_may_not_be_read_is_not_damaged(into: Path, pattern: str, arguments: list[str]) -> None:
    """The newest such file: nothing goes back behind it, nothing puts it aside; it is said of whom it is."""
    path = max(into.glob(pattern))
    withhold(path)
    before = contents(into)
    more = {"copy": [str(into.parent / "elsewhere")], "search": ["word"]}.get(arguments[0], [])
    done = as_user(*arguments, str(into), *more)
    assert done.returncode == (2 if pattern == "fyke.toml" and arguments == ["status"] else 3), done
    said = f"{done.stdout}{done.stderr}"
    assert f"{path}, which belongs to {path.owner()}: Permission denied; fix " in said and said.count("\n") == 1, said
    assert "damaged" not in said and "delete" not in said, said
    assert {path: body for path, body in contents(into).items() if path.name != "lock"} == {
        path: body for path, body in before.items() if path.name != "lock"
    }


def test_a_report_needs_no_home(into: Path) -> None:
    done = as_user("report", str(into))
    assert (done.returncode, done.stderr) == (0, ""), done
