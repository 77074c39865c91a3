"""A crawl against behaviours, judged from outside: by the ledger, by what the process took, by what `fyke why` says.

Nothing of the crawler is imported: it is run as a person runs it.
"""

import json
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

HASTE: Mapping[str, Mapping[str, Any]] = {  # a patient crawler would take hours for what is slow
    "politeness": {
        "host_delay_s": 0.0, "min_host_delay_s": 0.0, "address_delay_s": 0.0, "min_address_delay_s": 0.0,
        "delay_factor": 0.0, "failure_delay_s": 0.2, "host_failures": 4, "tries": 2,
    },
    "fetch": {"connect_timeout_s": 3.0, "timeout_s": 6.0, "stall_s": 2, "verify_tls": False},
    "dns": {"timeout_s": 0.5, "tries": 2, "negative_ttl_s": 2.0},
    "crawl": {"scope": "web", "wait_s": 3.0},
}  # fmt: skip
GENTLE: Mapping[str, Mapping[str, Any]] = {  # as it is without settings, but that hosts need no rest
    "politeness": {**HASTE["politeness"], "failure_delay_s": 15.0, "tries": 4},
    "fetch": {"verify_tls": False},
    "crawl": {"scope": "web"},
}


class _Player:
    """A process of servers that plays a cast, with less claim to a processor than others have where it is `meek`."""

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


class Running:
    """Servers that play a cast, each of `players` a part: the last has the start and the normal sites, the first all
    others, the one between, if there is one, the names."""

    def __init__(self, cast: Cast, players: Sequence[_Player]) -> None:
        self.cast = cast
        self._players = players
        self.port, self.dns = players[-1].port, players[len(players) // 2].dns
        self.seed = f"http://{host_of(START)}:{self.port}/"
        self.urls = urls_of(cast, players[0].port)

    def ledger(self) -> list[tuple[float, str, str]]:
        """When was which path of which host asked for."""
        return sorted(line for player in self._players for line in player.ledger())


@contextmanager
def running(cast: Cast, *, apart: bool = False) -> Iterator[Running]:
    """Play `cast` in a process of its own. `apart`: normal sites, names and all others in one each, and the last where
    the others leave a processor idle. Else normal sites would also wait for those who play the others, who in truth
    have machines of their own."""
    players: list[_Player] = []
    try:
        if apart:
            players.append(_Player(cast, meek=True))
            players.append(_Player(cast))
            cast = replace(cast, hostile_port=players[0].port)
        players.append(_Player(cast))
        yield Running(cast, players)
    finally:
        for player in players:
            player.process.kill()
            player.process.communicate()


@dataclass(frozen=True, slots=True)
class Judged:
    """What a crawl did: how it ended, what it took, and what it says of each behaviour."""

    status: int
    ending: str
    complaint: str  # the last line of what it said, where it failed
    seconds: float
    cpu_s: float
    peak_mb: float
    ledger: list[tuple[float, str, str]]
    verdicts: dict[str, str]
    cpu: list[tuple[float, float]]  # unix seconds, and how much it had taken by then

    @property
    def normal(self) -> list[tuple[float, str]]:
        """The requests for normal pages: when, and which."""
        return [(at, host + path) for at, host, path in self.ledger if host.startswith(NORMAL)]

    @property
    def last_normal_s(self) -> float:
        """Seconds from the first request to the last for a normal page."""
        return max((at for at, _ in self.normal), default=0.0) - self.ledger[0][0]

    @property
    def cpu_to_last_normal_s(self) -> float:
        """CPU it took from the first request to the last for a normal page: what a busy machine does not stretch."""
        last = self.ledger[0][0] + self.last_normal_s
        taken = [
            max((cpu_s for at, cpu_s in self.cpu if at <= until), default=0.0) for until in (self.ledger[0][0], last)
        ]
        return taken[1] - taken[0]


def toml(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Settings as a file has them."""
    lines = []
    for name, section in sections.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in section.items())]
    return "\n".join(lines) + "\n"


def why(into: Path, url: str) -> str:
    """What became of `url`, in a line."""
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
) -> Judged:
    """Crawl `cast` into `folder`; who has not ended after `patience_s` is killed, which is status -9. `ask` says what
    became of a URL, as `why` does; without it there are no verdicts. `apart`: as `running` has it."""
    folder.mkdir(parents=True, exist_ok=True)
    with running(cast, apart=apart) as servers:
        sections = {**settings, "dns": {**settings.get("dns", {}), "servers": [servers.dns], "private": ["hostile"]}}
        config, into = folder / "settings.toml", folder / "crawl"
        config.write_text(toml(sections))
        command = [sys.executable, "-m", "fyke", "crawl", servers.seed, "--config", str(config), "--into", str(into)]
        begun = time.monotonic()
        with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
            process = subprocess.Popen([*command, "--json", *options], stdout=out, stderr=err)
            status, usage, peak_kb, cpu = ended(process, begun + patience_s)
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


def ended(process: "subprocess.Popen[bytes]", deadline: float) -> tuple[int, Any, int, list[tuple[float, float]]]:
    """Exit status, what it took, the most memory it had resident, in kB, and its CPU seconds by time. Memory not by
    `ru_maxrss`: that of a process begins with what its parent had."""
    peak_kb, cpu = 0, []
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
        time.sleep(0.02)


def _peak_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()  # of a process that ended without this one
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def _cpu_s(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
