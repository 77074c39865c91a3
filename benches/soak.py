"""Crawls at full speed while everything fails, by a seed; at the end the result is judged by the laws.

    .venv/bin/python benches/soak.py [--minutes 30] [--seed N] [--pages 20000] [--hosts 300] [--disk-mb 600]

One synthetic web after the other is crawled, with faults in between:

- servers that reset, stall and refuse; a DNS that is silent, fails and sends cut answers;
- a disk that fills and empties; `kill -9`, SIGTERM, SIGSTOP and SIGCONT;
- flipped bits in files of a killed crawl, which must be named, and are then mended with `check --repair` or put back.

Every page of each web must be archived once, no forbidden page asked for, no host asked too soon, and `fyke check`
clean. Memory and open files of the crawl are printed. Exits with 1 if a law is broken.

The disk is a small file system of its own, which needs root. Without root the disk does not fail, and a line says so.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from soak_laws import archived, broken_laws, figures
from soak_watch import Watch

from fyke.disk import manifest as manifests
from fyke.lab.simweb import NameShares, PageShares, RobotsShares, WebSpec, lively, running_web
from fyke.lab.simweb.child import RunningWeb

HOST_DELAY_S = 0.1
CALM_S = 4.0  # between faults, in the mean
PATIENT_S = 900.0  # the longest time that a crawl without faults may take to end
SETTINGS = """
[politeness]
host_delay_s = {delay}
address_delay_s = 0
delay_factor = 0
failure_delay_s = 0.1
max_sleep_s = 1.0
host_failures = 100000
tries = 100000
[fetch]
connect_timeout_s = 3
timeout_s = 6
stall_s = 2
[crawl]
scope = "web"
wait_s = 60
[dns]
servers = ["{dns}"]
private = ["sim"]
timeout_s = 0.5
tries = 2
negative_ttl_s = 1
[store]
checkpoint_s = 2
table_rows = 3000
warc_bytes = 20000000
"""
LOADING_S = 3.0  # the longest time, on a busy machine, until a process listens to signals
UNREACHED = 5  # exit status of a crawl without any answer so far


def web_spec(seed: int, pages: int, hosts: int) -> WebSpec:
    """Return a lively web whose faults all pass: the tests of the laws have the lasting ones."""
    return lively(
        pages=pages,
        hosts=hosts,
        seed=seed,
        pages_exponent=0.3,
        mean_page_bytes=3000,
        page_shares=PageShares(
            redirect=0.02, chain=0.01, not_found=0.02, gone=0.01, flaky=0.01, throttled=0.005, slow=0.01,
            duplicate=0.03, noindex=0.01, pdf=0.01, text=0.02,
        ),
        robots_shares=RobotsShares(
            refused=0.03, empty=0.03, allow=0.1, sections=0.15, wildcards=0.1, own_group=0.06, moved=0.04, delay=0.03,
            closed=0.04, own_closed=0.03, flaky=0.02,
        ),
        name_shares=NameShares(several=0.1, alias=0.1, slow=0.03, flaky=0.03, missing=0.03),
        gopher=False,
        ftp=False,
    )  # fmt: skip


def dump(book: Path) -> list[str]:
    """Return the whole content of a database, as SQL."""
    with tempfile.TemporaryDirectory() as folder:
        for path in book.parent.glob(f"{book.name}*"):
            shutil.copy(path, folder)
        with closing(sqlite3.connect(Path(folder) / book.name)) as connection:
            return [*connection.iterdump()]


def kept_manifests(shard: Path) -> list[manifests.Manifest]:
    """Return the whole manifests of a shard."""
    found = (manifests.load(shard, number) for number in manifests.numbers(shard))
    return [manifest for manifest in found if manifest is not None]


class Failure(Exception):
    """A broken law or a crash, in a line."""


class Crawl:
    """The crawl of `web` into `into`, by the command, run again and again."""

    def __init__(self, web: RunningWeb, folder: Path, into: Path, watch: Watch) -> None:
        self.into, self._folder, self._watch = into, folder, watch
        config = folder / "settings.toml"
        config.write_text(SETTINGS.format(delay=HOST_DELAY_S, dns=web.dns))
        start = [sys.executable, "-m", "fyke", "crawl", *web.seeds, "--scope", "web", "--config", str(config)]
        self._command = [*start, "--into", str(into), "--json"]
        self.process: subprocess.Popen[bytes] | None = None
        self.kills: list[float] = []  # unix seconds
        self.started_at = 0.0  # by the monotonic clock

    def start(self) -> None:
        """Begin, or go on."""
        with (self._folder / "out").open("wb") as out, (self._folder / "err").open("ab") as err:
            self.process = subprocess.Popen(self._command, stdout=out, stderr=err)
        self._watch.process = self.process
        self.started_at = time.monotonic()

    def send(self, number: int) -> None:
        """Send a signal, unless the process is gone."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def ended(self, timeout_s: float = 0.0) -> int | None:
        """Return the exit status, or None while it runs."""
        assert self.process is not None
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def said(self) -> str:
        """Return the last lines on standard error."""
        lines = (self._folder / "err").read_text(errors="replace").splitlines()
        return " | ".join(lines[-3:])

    def summary(self) -> dict[str, Any]:
        """Return the summary printed at the end, or {} without one."""
        text = (self._folder / "out").read_text()
        found: dict[str, Any] = json.loads(text) if text.startswith("{") else {}
        return found


def fyke(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run any other command."""
    command = [sys.executable, "-m", "fyke", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


class Soak:
    """Faults by `seed`, for a crawl into a folder on `disk`."""

    def __init__(self, seed: int, disk: Path, has_disk: bool, backup: Path) -> None:
        self.dice = random.Random(seed)
        self.disk, self.has_disk, self.backup = disk, has_disk, backup
        self.counts: Counter[str] = Counter()
        self.faults = [
            *[self.bad_servers] * 4, *[self.bad_names] * 4, *[self.killed] * 3, self.stopped, self.paused, self.paused,
            *([self.full_disk] * 2 if has_disk else []), *[self.flipped] * 2,
        ]  # fmt: skip

    def one(self, web: RunningWeb, crawl: Crawl) -> None:
        """Cause one fault, drawn at random."""
        fault = self.dice.choice(self.faults)
        fault(web, crawl)

    def bad_servers(self, web: RunningWeb, crawl: Crawl) -> None:
        kind = self.dice.choice(["reset", "stall", "refuse"])
        self.counts[f"servers {kind}"] += 1
        web.change_weather(server=kind, share=self.dice.choice([0.1, 0.5, 1.0]))
        self._wait(crawl, self.dice.uniform(1, 5))
        web.change_weather()

    def bad_names(self, web: RunningWeb, crawl: Crawl) -> None:
        kind = self.dice.choice(["silent", "servfail", "malformed"])
        self.counts[f"names {kind}"] += 1
        web.change_weather(names=kind, share=self.dice.choice([0.1, 0.5, 1.0]))
        self._wait(crawl, self.dice.uniform(1, 5))
        web.change_weather()

    def killed(self, web: RunningWeb, crawl: Crawl) -> None:
        self.counts["kill -9"] += 1
        self._kill(crawl)
        crawl.start()

    def stopped(self, web: RunningWeb, crawl: Crawl) -> None:
        self.counts["SIGTERM"] += 1
        loading = time.monotonic() - crawl.started_at < LOADING_S
        crawl.send(signal.SIGTERM)
        status = crawl.ended(60)
        if loading and status == -signal.SIGTERM:  # the process did not listen yet, and had begun nothing
            crawl.start()
            return
        if status != 0:
            raise Failure(f"SIGTERM: ended with {status}: {crawl.said()}")
        if crawl.summary()["ending"] != "finished":
            crawl.start()

    def paused(self, web: RunningWeb, crawl: Crawl) -> None:
        self.counts["SIGSTOP"] += 1
        crawl.send(signal.SIGSTOP)
        time.sleep(self.dice.choice([0.5, 3.0, 9.0]))
        crawl.send(signal.SIGCONT)

    def full_disk(self, web: RunningWeb, crawl: Crawl) -> None:
        self.counts["full disk"] += 1
        while not (crawl.into / "fyke.toml").is_file() and crawl.ended(0.1) is None:
            pass  # a crawl that has not begun ends with a line, and loses nothing
        filling = self.disk / "filling"
        with suppress(OSError), filling.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        self._wait(crawl, self.dice.uniform(2, 8))
        filling.unlink()
        if crawl.ended() is not None and (crawl.ended() or crawl.summary()["ending"] != "finished"):
            raise Failure(f"a full disk ended the crawl: {crawl.said()}")

    def flipped(self, web: RunningWeb, crawl: Crawl) -> None:
        self._kill(crawl)
        files = [path for path in sorted(crawl.into.rglob("*")) if path.is_file() and path.stat().st_size]
        files = [path for path in files if crawl.into / "damaged" not in path.parents]  # put aside by a repair
        files = [path for path in files if path.suffix not in (".log", ".sqlite-shm", ".toml")]  # people edit fyke.toml
        if not files:  # killed before anything was written
            crawl.start()
            return
        path = self.dice.choice(files)
        whole = path.read_bytes()
        at, bit = self.dice.randrange(len(whole)), self.dice.randrange(8)
        kind = f"{path.parent.name}/{path.suffix or path.name}"
        self.counts[f"flip in {kind}"] += 1
        shutil.rmtree(self.backup, ignore_errors=True)
        shutil.copytree(crawl.into, self.backup, ignore=shutil.ignore_patterns("*.sock"))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        where = f"{path.relative_to(crawl.into)}, byte {at} of {len(whole)}, bit {bit}"
        found = fyke("check", str(crawl.into))
        if found.returncode == 0:
            if not self._no_matter(crawl, path, at):
                raise Failure(f"fyke check does not see the flipped bit in {where}: {found.stdout}")
            self.counts["of no matter"] += 1
            path.write_bytes(whole)
        elif found.returncode not in (1, 3) or "Traceback" in found.stderr + found.stdout:
            raise Failure(f"fyke check fails at the flipped bit in {where}: {found.stderr[-300:]}")
        elif not self._repaired(crawl, where):
            self.counts["put back"] += 1
            shutil.rmtree(crawl.into)
            shutil.copytree(self.backup, crawl.into)
        crawl.start()

    def _no_matter(self, crawl: Crawl, path: Path, at: int) -> bool:
        """Return whether a byte may change: no checkpoint counts it, nobody trusts it, or no row is in it."""
        if path.name.startswith("hosts.sqlite"):
            return dump(crawl.into / "state" / "hosts.sqlite") == dump(self.backup / "state" / "hosts.sqlite")
        if path.parent.name.startswith("shard-") and path.suffix != ".json":  # a kill leaves unnamed files
            return not any(at < manifest.files.get(path.name, 0) for manifest in kept_manifests(path.parent))
        if path.parent.name not in ("warc", "tables"):
            return path.name == "fyke.log"
        manifest = max((crawl.into / "state" / "shard-0000").glob("manifest-*.json"))
        saved = json.loads(manifest.read_text())["manifest"]["participants"]
        if path.parent.name == "tables":
            return path.suffix in (".arrows", ".part")  # `fyke check` reads the rows that the manifest counts
        counted = saved["archive"].get("file", "").removeprefix("warc/")
        stem = path.name.partition(".")[0]
        beyond = at >= saved["archive"].get("length", 0) if path.suffix == ".gz" else True
        return stem > counted.partition(".")[0] or (stem == counted.partition(".")[0] and beyond)

    def _repaired(self, crawl: Crawl, where: str) -> bool:
        """Return whether the crawl can go on after a repair that lost nothing."""
        if self.dice.random() < 0.5:
            return False
        done = fyke("check", "--repair", str(crawl.into), "--json")
        if done.returncode not in (0, 1) or "Traceback" in done.stderr:
            raise Failure(f"check --repair fails at the flipped bit in {where}: {done.stderr[-300:]}")
        notes = json.loads(done.stdout)["notes"]
        if any(note["lost"] for note in notes):
            return False
        self.counts["repaired"] += 1
        return True

    def _kill(self, crawl: Crawl) -> None:
        crawl.kills.append(time.time())
        crawl.send(signal.SIGKILL)
        crawl.ended(60)

    def _wait(self, crawl: Crawl, seconds: float) -> None:
        crawl.ended(seconds)


def soak_one(soak: Soak, spec: WebSpec, folder: Path, into: Path, watch: Watch, until: float) -> list[str]:
    """Crawl one web, with faults as long as time is left; return the laws that were broken."""
    with running_web(spec, folder / "ledger.arrows") as web:
        crawl = Crawl(web, folder, into, watch)
        crawl.start()
        try:
            _with_faults(soak, web, crawl, until)
            deadline = time.monotonic() + PATIENT_S
            while (status := crawl.ended(1.0)) is None:
                if time.monotonic() > deadline:
                    raise Failure("the crawl does not end")
        except Failure as failure:
            crawl.send(signal.SIGCONT)
            crawl.send(signal.SIGKILL)
            return [str(failure)]
        finally:
            crawl.send(signal.SIGCONT)
        if status or crawl.summary().get("ending") != "finished":
            return [f"the crawl ended with {status}: {crawl.summary().get('ending')}: {crawl.said()}"]
        print(f"  {figures(web, into)}; so far {dict(sorted(soak.counts.items()))}", flush=True)
        checked = fyke("check", str(into))
        broken = [f"fyke check: {checked.stdout[-400:]}"] if checked.returncode else []
        return [*broken, *broken_laws(web, into, HOST_DELAY_S, crawl.kills)]


def _with_faults(soak: Soak, web: RunningWeb, crawl: Crawl, until: float) -> None:
    while time.monotonic() < until:
        status = crawl.ended(soak.dice.expovariate(1 / CALM_S))
        if status is not None:
            if status == 0:
                return
            if status == UNREACHED and not archived(crawl.into):  # as the message says: the same command again
                soak.counts["nothing reached, begun again"] += 1
                crawl.start()
                continue
            raise Failure(f"the crawl ended with {status}: {crawl.said()}")
        soak.one(web, crawl)


@contextmanager
def small_disk(folder: Path, size_mb: int) -> Iterator[bool]:
    """Mount a file system of its own at `folder`, if possible; yield whether it was."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", str(folder)]
    mounted = not os.geteuid() and not subprocess.run(mount, capture_output=True, check=False).returncode
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=False)


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pages", type=int, default=20_000, help="of each web")
    parser.add_argument("--hosts", type=int, default=300, help="of each web")
    parser.add_argument("--disk-mb", type=int, default=600)
    parser.add_argument("--keep", type=Path, help="copy the last crawl here when a law is broken")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as name, small_disk(Path(name) / "disk", options.disk_mb) as has_disk:
        folder, disk = Path(name), Path(name) / "disk"
        soak = Soak(options.seed, disk, has_disk, folder / "backup")
        print(
            f"seed {options.seed}, {options.minutes:g} minutes; the disk {'fills too' if has_disk else 'never fills'}"
        )
        with Watch() as watch:
            webs = 0
            while not broken and (not webs or time.monotonic() < until):
                into = disk / f"crawl-{webs}"
                spec = web_spec(1000 * options.seed + webs, options.pages, options.hosts)
                broken = soak_one(soak, spec, folder, into, watch, until)
                webs += 1
                if broken and options.keep:
                    shutil.copytree(folder, options.keep, ignore=shutil.ignore_patterns("*.sock", "backup"))
                shutil.rmtree(into, ignore_errors=True)
        print(f"{webs} webs, {sum(soak.counts.values())} faults: {dict(sorted(soak.counts.items()))}")
        print(watch.report())
    for law in broken:
        print(f"BROKEN: {law}")
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
