"""A command loads what it needs and no more; Ctrl-C while it does, or a package that is missing, is no traceback."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from crawl.small_site import small_site

SETTINGS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
NEEDED = {line.partition(">")[0].replace("-", "_") for line in SETTINGS["project"]["dependencies"]}
PACKAGES = NEEDED | {  # with those of the extras
    line.partition(">")[0].replace("-", "_")
    for lines in SETTINGS["project"]["optional-dependencies"].values()
    for line in lines
}
OF_COMMANDS = {"typer", "rich", "pydantic"}  # typer loads pydantic for itself

COMMANDS = [
    ["--version"],
    ["--help"],
    ["crawl", "http://127.0.0.1:9/", "--into", "none", "--dns", "nowhere"],
    ["status", "none"],
    ["why", "none", "http://127.0.0.1:9/"],
    ["check", "none"],
    ["index", "none"],
    ["search", "none", "words"],
    ["report", "none"],
    ["export", "none", "--to", "csv"],
    ["rewrite", "none"],
    ["serve", "none"],
    ["plan", "--plot", "plan.gif"],
    ["simulate", "--into", "none", "--policy", "none"],
    ["web", "--ledger", "none/ledger"],
]


def run(code: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`code`, then the command with `arguments`, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60, check=False, cwd=folder
    )


LOADED = """
import sys
before = {*sys.modules}
from fyke.__main__ import main
at_first = {*sys.modules} - before
try:
    main()
finally:
    import json
    print(json.dumps([sorted(at_first), sorted({name.partition(".")[0] for name in sys.modules})]), file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["crawl", "--help"], ["crawl", "--foo"], ["status"]])
def test_what_needs_no_room_loads_none(arguments: list[str], tmp_path: Path) -> None:
    """Counted in packages, since seconds are another machine's; and nothing comes before Ctrl-C is minded."""
    at_first, loaded = json.loads(run(LOADED, *arguments, folder=tmp_path).stderr.splitlines()[-1])
    assert {"fyke", "fyke.__main__"} <= {*at_first} <= {"fyke", "fyke.__main__", "_signal"}
    assert not {*loaded} & (PACKAGES - OF_COMMANDS)


INTERRUPTED = """
import json, os, runpy, signal, sys

EVERY = 9
python_minds = signal.default_int_handler
met, ended = [], {}

class Instants:
    "Wherever a module is looked for, a process like this one is sent Ctrl-C."

    def find_spec(self, name, path=None, target=None):
        if not met and signal.getsignal(signal.SIGINT) is python_minds:
            return None  # Python itself is starting still
        met.append(name)
        if len(met) % EVERY:
            return None
        child = os.fork()
        if child:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            ended[status] = ended.get(status, 0) + 1
        else:
            sys.meta_path.remove(self)
            signal.alarm(20)
            os.kill(os.getpid(), signal.SIGINT)
        return None

this = os.getpid()
sys.meta_path.insert(0, Instants())
try:
    runpy.run_module("fyke", run_name="__main__", alter_sys=True)
finally:
    if os.getpid() == this:
        print(json.dumps({"met": len(met), "ended": ended}))
"""


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_ctrl_c_while_it_loads(arguments: list[str], tmp_path: Path) -> None:
    """By the signal itself, or as a shell says that: 130; nothing is said but that it was interrupted."""
    done = run(INTERRUPTED, *arguments, folder=tmp_path)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["met"] > 50 and {*found["ended"]} <= {"-2", "130"}, (found, done.stderr)
    assert "Traceback" not in done.stderr


MISSING = """
import sys
sys.modules[sys.argv.pop(1)] = None
from fyke.__main__ import main
main()
"""


WHILE_IT_RUNS = {"certifi", "py3langid"}


@pytest.mark.parametrize("package", sorted(NEEDED - WHILE_IT_RUNS))
def test_a_missing_package(package: str, tmp_path: Path) -> None:
    needing = "export" if package == "fastwarc" else "crawl"
    arguments = next(arguments for arguments in COMMANDS if arguments[0] == needing)
    done = run(MISSING, package, *arguments, folder=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(f"fyke: the Python package {package} ") and f"pip install {package}" in done.stderr


BROKEN = """
import sys

class Broken:
    "The library of a package is there, and cannot be loaded."

    def find_spec(self, name, path=None, target=None):
        if name == "selectolax.lexbor":
            raise ImportError(REASON, name="lexbor", path="/there/site-packages/selectolax/lexbor.so")

REASON = sys.argv.pop(1)
sys.meta_path.insert(0, Broken())
from fyke.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("undefined symbol: PyThis", "pip install --force-reinstall selectolax"),
        ("lexbor.so: failed to map segment from shared object", "ulimit -v"),
    ],
)
def test_a_broken_package(reason: str, advice: str, tmp_path: Path) -> None:
    done = run(BROKEN, reason, *COMMANDS[2], folder=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and advice in done.stderr, done.stderr


def test_a_stack_that_is_too_small(tmp_path: Path) -> None:
    """The process would die of a deep page, without a word."""
    command = [sys.executable, "-m", "fyke", "status", str(tmp_path)]
    small = ["bash", "-c", 'ulimit -s 100; exec "$@"', "-", *command]
    done = subprocess.run(small, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "ulimit -s" in done.stderr, done.stderr


LEAST_MB = {"crawl": 1 << 10, "check": 1 << 10, "export": 2 << 10, "index": 2 << 10, "report": 2 << 10}


def limited(megabytes: int, *command: str) -> subprocess.CompletedProcess[str]:
    small = ["bash", "-c", f'ulimit -v {megabytes << 10}; exec "$@"', "-", sys.executable, "-m", "fyke", *command]
    return subprocess.run(small, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("command", LEAST_MB)
def test_addresses_that_are_too_few(command: str, tmp_path: Path) -> None:
    """Arrow ended the process or hung, DuckDB showed a traceback."""
    done = limited(LEAST_MB[command] - 1, command, str(tmp_path))
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "ulimit -v" in done.stderr, done.stderr


def test_addresses_that_do(tmp_path: Path) -> None:
    into = str(tmp_path / "crawl")
    with small_site() as site:
        commands = [["crawl", site.url, "--into", into, "--delay", "0"], ["check", into], ["index", into]]
        for command in [*commands, ["export", into, "--to", "parquet"], ["report", into]]:
            done = limited(LEAST_MB[command[0]], *command)
            assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("files", [6, 10, 60])
def test_files_that_are_too_few(files: int, tmp_path: Path) -> None:
    """With a dozen the event loop broke while it was made, and again while it was closed."""
    command = [sys.executable, "-m", "fyke", "crawl", "http://127.0.0.1:9/", "--into", str(tmp_path / "crawl")]
    few = ["bash", "-c", f'ulimit -n {files}; exec "$@"', "-", *command]
    done = subprocess.run(few, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "ulimit -n" in done.stderr, done.stderr
    assert not (tmp_path / "crawl").exists()


def test_our_own_mistake_shows_itself(tmp_path: Path) -> None:
    done = run(MISSING, "fyke.crawl.run", *COMMANDS[2], folder=tmp_path)
    assert done.returncode == 1 and "Traceback" in done.stderr


def test_who_has_no_null_device_is_told_in_a_line(tmp_path: Path) -> None:
    """As in a chroot without /dev: agents and readers of documents could not begin."""
    without = "import os, runpy, sys; os.devnull = sys.argv.pop(1); runpy.run_module('fyke', run_name='__main__')"
    command = [sys.executable, "-c", without, str(tmp_path / "null"), "crawl", "http://a.test/", "--into"]
    done = subprocess.run([*command, str(tmp_path / "crawl")], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "mount /dev" in done.stderr, done.stderr
    assert not (tmp_path / "crawl").exists()
