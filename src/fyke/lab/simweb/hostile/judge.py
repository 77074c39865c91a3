"""A crawl against behaviours, judged from outside: by the ledger, the process's resources, and `fyke why`.

Nothing of the crawler is imported: it is run as a person runs it.
"""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fyke.lab.simweb.hostile.servers import NORMAL, START, Cast, host_of, urls_of

ASKS_S = 1.0  # between two questions whether a crawl has done enough
HASTE: Mapping[str, Mapping[str, Any]] = {  # because a patient crawler would spend hours on slow sites
    "politeness": {
        "host_delay_s": 0.0, "min_host_delay_s": 0.0, "address_delay_s": 0.0, "min_address_delay_s": 0.0,
        "delay_factor": 0.0, "failure_delay_s": 0.2, "host_failures": 4, "tries": 2,
    },
    "fetch": {"connect_timeout_s": 3.0, "timeout_s": 6.0, "stall_s": 2, "verify_tls": False},
    "dns": {"timeout_s": 0.5, "tries": 2, "negative_ttl_s": 2.0},
    "crawl": {"scope": "web", "wait_s": 3.0},
}  # fmt: skip
GENTLE: Mapping[str, Mapping[str, Any]] = {  # the defaults, except that hosts need no rest
    "politeness": {**HASTE["politeness"], "failure_delay_s": 15.0, "tries": 4},
    "fetch": {"verify_tls": False},
    "crawl": {"scope": "web"},
}


class _Player:
    """A process of servers that plays a cast. A `meek` one runs at the lowest priority."""

    def __init__(self, cast: Cast, *, meek: bool = False) -> None:
        command = [sys.executable, "-m", "fyke.lab.simweb.hostile.servers", json.dumps(asdict(cast))]
        gentle = ["nice", "-n", "19"] if meek else []
        self.process = subprocess.Popen([*gentle, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = self._line()
        self.port, self.dns = ready["port"], ready["dns"]

    def _line(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ledger(self) -> list[tuple[float, str, str]]:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return [(at, host, path) for at, host, path in self._line()]


class RunningServers:
    """The servers that play a cast, split among `players`.

    The last player has the start and the normal sites, the first all other hosts, the middle one, if any, the names.
    """

    def __init__(self, cast: Cast, players: Sequence[_Player]) -> None:
        self.cast = cast
        self._players = players
        self.port, self.dns = players[-1].port, players[len(players) // 2].dns
        self.seed = f"http://{host_of(START)}:{self.port}/"
        self.urls = urls_of(cast, players[0].port)

    def ledger(self) -> list[tuple[float, str, str]]:
        """Return all requests in order of time: (unix seconds, host, path)."""
        return sorted(line for player in self._players for line in player.ledger())


@contextmanager
def running(cast: Cast, *, apart: bool = False) -> Iterator[RunningServers]:
    """Play `cast` in its own process.

    `apart`: play normal sites, names and the other hosts in one process each, the last at the lowest priority.
    Otherwise normal sites would also wait for the hostile ones, which in truth have their own machines.
    """
    players: list[_Player] = []
    try:
        if apart:
            players.append(_Player(cast, meek=True))
            players.append(_Player(cast))
            cast = replace(cast, hostile_port=players[0].port)
        players.append(_Player(cast))
        yield RunningServers(cast, players)
    finally:
        for player in players:
            player.process.kill()
            player.process.communicate()


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of a crawl: how it ended, what it took, and its verdict on each behaviour."""

    status: int
    ending: str
    complaint: str  # the last line of its error output, if it failed
    seconds: float
    cpu_s: float
    peak_mb: float
    ledger: list[tuple[float, str, str]]
    verdicts: dict[str, str]
    cpu: list[tuple[float, float]]  # (unix seconds, CPU seconds used by then)

    @property
    def normal(self) -> list[tuple[float, str]]:
        """The requests for normal pages: (unix seconds, host and path)."""
        return [(at, host + path) for at, host, path in self.ledger if host.startswith(NORMAL)]

    @property
    def last_normal_s(self) -> float:
        """Seconds from the first request to the last for a normal page."""
        return max((at for at, _ in self.normal), default=0.0) - self.ledger[0][0]

    @property
    def cpu_to_last_normal_s(self) -> float:
        """CPU seconds from the first request to the last for a normal page: a busy machine does not stretch them."""
        last = self.ledger[0][0] + self.last_normal_s
        taken = [
            max((cpu_s for at, cpu_s in self.cpu if at <= until), default=0.0) for until in (self.ledger[0][0], last)
        ]
        return taken[1] - taken[0]


def toml(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Return settings as the text of a file."""
    lines = []
    for name, section in sections.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in section.items())]
    return "\n".join(lines) + "\n"


def why(into: Path, url: str) -> str:
    """Return the verdict of `fyke why` on `url`, in a line."""
    command = [sys.executable, "-m", "fyke", "why", str(into), url, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return str(json.loads(done.stdout)["verdict"]) if done.stdout else " ".join(done.stderr.splitlines()[-1:])


def judged(
    cast: Cast,
    folder: Path,
    settings: Mapping[str, Mapping[str, Any]] = HASTE,
    *,
    options: Sequence[str] = (),
    patience_s: float = 120.0,
    ask: Callable[[Path, str], str] | None = why,
    apart: bool = False,
    enough: Callable[[RunningServers], bool] = lambda servers: False,
) -> Judged:
    """Crawl `cast` into `folder`; kill the crawl after `patience_s`, which is status -9.

    `ask` returns the verdict on a URL, as `why` does; without it there are no verdicts. `apart` is that of `running`.
    Once `enough` holds, which is asked each second, the crawl is told to stop.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with running(cast, apart=apart) as servers:
        sections = {**settings, "dns": {**settings.get("dns", {}), "servers": [servers.dns], "private": ["hostile"]}}
        config, into = folder / "settings.toml", folder / "crawl"
        config.write_text(toml(sections))
        command = [sys.executable, "-m", "fyke", "crawl", servers.seed, "--config", str(config), "--into", str(into)]
        begun = time.monotonic()
        with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
            process = subprocess.Popen([*command, "--json", *options], stdout=out, stderr=err)
            status, usage, peak_kb, cpu = ended(process, begun + patience_s, lambda: enough(servers))
        seconds = time.monotonic() - begun
        said = (folder / "out").read_text()
        complaint = "" if not status else " ".join((folder / "err").read_text().splitlines()[-1:])
        verdicts = {name: ask(into, url) for name, url in servers.urls.items()} if ask else {}
        return Judged(
            status,
            str(json.loads(said)["ending"]) if said else "none",
            complaint,
            seconds,
            usage.ru_utime + usage.ru_stime,
            peak_kb / 1024,
            servers.ledger(),
            verdicts,
            cpu,
        )


def ended(
    process: "subprocess.Popen[bytes]", deadline: float, enough: Callable[[], bool] = lambda: False
) -> tuple[int, Any, int, list[tuple[float, float]]]:
    """Return exit status, resource usage, peak resident memory in kB, and CPU seconds by time; as `judged`.

    Memory is not `ru_maxrss`, which starts at the size of the process's parent.
    """
    peak_kb, cpu = 0, []
    asks_at = time.monotonic() + ASKS_S
    while True:
        peak_kb = max(peak_kb, _peak_kb(process.pid))
        cpu.append((time.time(), _cpu_s(process.pid)))
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage, peak_kb, cpu
        if time.monotonic() > deadline:
            process.kill()
            deadline += 3600
        if time.monotonic() > asks_at:
            asks_at = time.monotonic() + ASKS_S
            if enough():
                process.terminate()
                asks_at = math.inf  # told twice, it would end at once
        time.sleep(0.02)


def _peak_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()  # of a process that has ended but was not waited for
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def _cpu_s(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
