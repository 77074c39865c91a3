"""What `pip install fyke` alone can do, and what each extra adds."""

import os
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest

from commands import in_process
from crawl.runs import crawl, settings
from crawl.small_site import small_site

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
EXTRAS = {
    name: [line.partition(">")[0] for line in lines if not line.startswith("fyke[")]
    for name, lines in PROJECT["optional-dependencies"].items()
}
WITHOUT = """
import shlex, sys
for package in sys.argv.pop(1).split(","):
    sys.modules[package.replace("-", "_")] = None
from fyke.__main__ import main
for line in sys.argv[1:]:
    sys.argv[1:] = shlex.split(line)
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


def without(extras: str, *commands: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Commands, one after the other until one fails, where the packages of `extras` were not installed."""
    packages = ",".join(package for name in extras.split(",") for package in EXTRAS[name])
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, packages, *map(shlex.join, commands)],
        capture_output=True, text=True, timeout=100, check=False, cwd=folder,
    )  # fmt: skip


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crawl")
    with small_site(pages=5) as site:
        assert crawl(folder / "there", settings(folder), site.url).status == 0
    return folder


def test_what_a_crawl_needs_is_there_without_extras(tmp_path: Path) -> None:
    with small_site(pages=5) as site:
        run = without(
            "search,report,serve",
            ["crawl", site.url, "--into", "there", "--config", str(settings(tmp_path))],
            ["status", "there"],
            ["why", "there", site.url],
            ["check", "there"],
            ["check", "there", "--repair"],
            ["plan"],
            *(["export", "there", "--to", kind] for kind in ("parquet", "jsonl", "markdown", "wacz", "links", "csv")),
            folder=tmp_path,
        )
    assert run.returncode == 0 and "Traceback" not in run.stderr, run.stderr


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("search", ["index", "there"]),
        ("search", ["search", "there", "word"]),
        ("serve", ["serve", "there"]),
        ("report", ["report", "there"]),
        ("report", ["links", "there", "--broken"]),
        ("report", ["plan", "--plot", "x.png"]),
        ("report", ["simulate", "--into", "x", "--pages", "100"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_missing_extra_is_one_line_that_names_it(crawled: Path, extra: str, arguments: list[str]) -> None:
    run = without(extra, arguments, folder=crawled)
    assert run.returncode == 2 and not run.stdout
    (line,) = run.stderr.splitlines()
    assert line.startswith("fyke: this needs ") and line.endswith(f"-m pip install 'fyke[{extra}]'"), line


@pytest.mark.parametrize(("extra", "arguments"), [("search", ["index", "there"]), ("report", ["report", "there"])])
def test_an_extra_is_enough_for_its_commands(crawled: Path, extra: str, arguments: list[str]) -> None:
    others = ",".join({"search", "report", "serve"} - {extra})
    packages = [package for name in others.split(",") for package in EXTRAS[name] if package not in EXTRAS[extra]]
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT, ",".join(packages), shlex.join(arguments)],
        capture_output=True, text=True, timeout=100, check=False, cwd=crawled,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr


def test_all_is_all() -> None:
    lines = requires("fyke") or []
    for name, packages in EXTRAS.items():
        for package in packages:
            assert any(line.startswith(package) and "extra == 'all'" in line for line in lines), (name, package)


def test_short_help() -> None:
    for arguments in ([], ["crawl"], ["links"]):
        short, long = (in_process(*arguments, flag) for flag in ("-h", "--help"))
        assert short == long and not long.status and "Usage: fyke" in long.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    """The shell's script is printed, and what it asks is answered."""
    done = subprocess.run(
        [sys.executable, "-c", "from fyke.__main__ import main; main()", "--show-completion", shell],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},  # else only the shell that runs us
    )
    assert done.returncode == 0 and "FYKE_COMPLETE" in done.stdout.upper(), done.stderr
    asked = {
        "COMP_WORDS": "fyke cr",
        "COMP_CWORD": "1",
        "_FYKE_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "fyke cr",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(
        [sys.executable, "-c", "from fyke.__main__ import main; main()"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | asked,
    )
    assert done.returncode == 0 and "crawl" in done.stdout, done
