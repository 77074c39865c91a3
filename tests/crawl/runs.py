"""Crawls as a person runs them: the command in a process of its own, its summary, its directory."""

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands import in_process
from fyke.archive.directory import CrawlDirectory, saved_state
from fyke.archive.reading import read_table, rows_recorded
from fyke.core.config import build, render
from fyke.lab.simweb.child import RunningWeb
from loaded import COMMAND, Loaded

FAST = {"host_delay_s": 0.0, "address_delay_s": 0.0, "delay_factor": 0.0}
PATIENCE = {"failure_delay_s": 0.1, "max_sleep_s": 1.0, "host_failures": 5}
HASTE = {"connect_timeout_s": 3.0, "timeout_s": 6.0, "stall_s": 2}


@dataclass(frozen=True)
class Run:
    """A run that has ended."""

    status: int
    summary: dict[str, Any]
    errors: str


def settings(folder: Path, web: RunningWeb | None = None, **sections: Mapping[str, Any]) -> Path:
    """A settings file below `folder`: `sections` over those that suit a crawl of `web`."""
    values: dict[str, dict[str, Any]] = {
        "politeness": {**FAST, **PATIENCE},
        "fetch": dict(HASTE),
        "dns": {"timeout_s": 0.5, "tries": 4, "negative_ttl_s": 1.0},
    }
    if web is not None:
        values["dns"] |= {"servers": [web.dns], "private": ["sim"]}
    for name, section in sections.items():
        values.setdefault(name, {}).update(section)
    path = folder / "settings.toml"
    path.write_text(render(build(values, "test")))
    return path


def command(into: Path, config: Path, *arguments: str) -> list[str]:
    return [*COMMAND, "crawl", *arguments, "--config", str(config), "--into", str(into), "--json"]


def begin(into: Path, config: Path, *arguments: str, **options: Any) -> "subprocess.Popen[Any]":
    """Begin `fyke crawl`. What it prints goes nowhere, or where `options` of Popen say."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return Loaded(command(into, config, *arguments), **{**quiet, **options})


def crawl(into: Path, config: Path, *arguments: str) -> Run:
    """Run `fyke crawl` to its end; the test has a limit of its own, long enough for a busy machine."""
    return run_of(ended(command(into, config, *arguments)))


def crawl_apart(into: Path, config: Path, *arguments: str) -> Run:
    """As `crawl`, in a process that shares no memory with others: for tests that measure it."""
    typed = command(into, config, *arguments)
    return run_of(subprocess.run(typed, capture_output=True, text=True, check=False))


def run_of(done: "subprocess.CompletedProcess[str]") -> Run:
    return Run(done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr)


def crawl_here(into: Path, config: Path, *arguments: str) -> Run:
    """As `crawl`, in this process: for what comes of several crawls, where loading would take longer than they do."""
    said = in_process(*command(into, config, *arguments)[3:])
    return Run(said.status, json.loads(said.out) if said.out else {}, said.errors)


def crawl_killed(into: Path, config: Path, after_s: float, *arguments: str) -> bool:
    """Run `fyke crawl` and kill it with SIGKILL after a time; False when it had ended before."""
    return killed_after(begin(into, config, *arguments, start_new_session=True), after_s)


def killed_after(process: "subprocess.Popen[Any]", after_s: float) -> bool:
    """Kill a process with SIGKILL after a time; False when it had ended before."""
    with process:
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            process.kill()
            return True
    return False


def killed_at(process: "subprocess.Popen[Any]", into: Path, table: str, rows: int) -> None:
    """Kill a crawl into `into` once its checkpoint has so many `rows` of a table; its socket, which cannot be copied,
    goes too."""
    shard = CrawlDirectory(into).shard
    with process:
        wait_until(lambda: shard.is_dir() and rows_recorded(saved_state(shard), table) >= rows)
        process.kill()
    (into / "state" / "control.sock").unlink()


def fyke(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Any other command."""
    return ended([*COMMAND, *arguments])


def ended(typed: list[str]) -> "subprocess.CompletedProcess[str]":
    """What a command said to its end."""
    with Loaded(typed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, errors = process.communicate()
    return subprocess.CompletedProcess(typed, process.returncode, out, errors)


def fyke_here(*arguments: str) -> subprocess.CompletedProcess[str]:
    """As `fyke`, in this process: for tests that ask a crawl many things."""
    said = in_process(*arguments)
    return subprocess.CompletedProcess(arguments, said.status, said.out, said.errors)


def archived(into: Path) -> list[str]:
    """The URLs of the pages table that were fetched whole, as often as they are there."""
    table = read_table(into, "pages", ["url", "outcome"])
    return [url for url, outcome in zip(*table.to_pydict().values(), strict=True) if outcome == "ok"]


def begun(into: Path) -> list[str]:
    """The URLs of the pages table of which only the beginning came, as often as it was archived."""
    table = read_table(into, "pages", ["url", "outcome", "warc_file"])
    rows = zip(*table.to_pydict().values(), strict=True)
    return [url for url, outcome, file in rows if outcome == "incomplete" and file]


def requested(web: RunningWeb) -> list[str]:
    """The URLs of the ledger with status 200, as often as they were asked for."""
    rows = web.ledger().to_pydict()
    keys = zip(rows["scheme"], rows["host"], rows["path"], rows["status"], strict=True)
    return [f"{scheme}://{host}{path}" for scheme, host, path, status in keys if status == 200]


def wait_for(path: Path, timeout_s: float = 20) -> None:
    """Until `path` is there."""
    end = time.monotonic() + timeout_s
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(path)
        time.sleep(0.02)


def wait_until(true: Callable[[], bool], timeout_s: float = 60) -> None:
    """Until `true` is."""
    end = time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(true)
        time.sleep(0.02)
