"""What does an installation cost, and does it work? `python benches/installing.py [EXTRA...]`.

Builds the wheel, installs it into empty environments, by itself and with extras, and prints the disk space of each
and the CPU seconds of `fyke --version` there (the least of five). The environment without extras then crawls a
synthetic web and checks the archive. Needs a package index.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from usage import arguments

HERE = Path(__file__).parents[1]


def build(into: Path) -> Path:
    """Build the wheel of this source and return its path."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(into), str(HERE)]
    subprocess.run(command, check=True)
    return next(into.glob("*.whl"))


def install(wheel: Path, extra: str, into: Path) -> Path:
    """Make an environment with the wheel and nothing else; return its `fyke`."""
    venv.create(into)
    what = f"fyke[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(into / "bin/python"), "install", "-q", what], check=True
    )
    return into / "bin" / "fyke"


def size_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def cold_start_s(fyke: Path) -> float:
    """Return the CPU seconds of `fyke --version`."""
    taken = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([str(fyke), "--version"], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(taken)


def try_it(fyke: Path, folder: Path) -> None:
    """Crawl fifty pages, and check them. Raises if that fails."""
    web = subprocess.Popen(
        [str(fyke), "web", "--plain", "--pages", "50", "--hosts", "5", "--json"], stdout=subprocess.PIPE
    )
    try:
        assert web.stdout is not None
        told = json.loads(web.stdout.readline())
        into, private = str(folder / "there"), ["--dns", told["dns"], "--private", "sim", "--delay", "0"]
        command = [str(fyke), "crawl", *told["seeds"], "--into", into, "--scope", "web", *private, "--json"]
        done = subprocess.run(command, check=True, capture_output=True)
        print(f"it crawled {json.loads(done.stdout)['pages']} pages, and:", flush=True)
        subprocess.run([str(fyke), "check", into], check=True)
    finally:
        web.terminate()
        web.wait()


def main(extras: list[str]) -> None:
    os.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        wheel = build(folder)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e3:,.0f} kB")
        for extra in extras:
            there = folder / f"with-{extra}"
            fyke = install(wheel, extra, there)
            packages = len([*there.glob("lib/python3*/site-packages/*.dist-info")])
            named = f"fyke[{extra}]" if extra else "fyke"
            size, start = size_bytes(there), cold_start_s(fyke)
            print(f"{named:16} {size / 1e6:6.0f} MB {packages:4} packages   fyke --version {start:.2f} s", flush=True)
            if not extra:
                try_it(fyke, folder)


if __name__ == "__main__":
    main(*arguments(__doc__, extra=["", "search", "all"]))
