"""The rests that are due, in a journal, so that a dead process makes nobody be asked too soon.

`HostDesk` notes a request here before it begins. When the request has ended, it notes until when its host and its
address rest. The next process reads the journal. A noted name rests (a host by its name, an address by `@` and its
digits). A name with a request under way rests from the last instant at which that can have ended. A host's long rest is
in the host book, which is consulted for years; the journal is for short ones.

A note is one `write`, a few microseconds, and safe against `kill -9` once it returned. After a power cut the last notes
may be missing. So a journal that was not written since this machine was started says nothing, and everybody rests for
as long as a rest outside the book can last.

Every line has a digest. The journal also notes how often the book was written, so that saves which a disk lost, even
the last ones, are missed (`check_book`). And it notes the names of seeds that were found at a public address, because
the book learns of them later: such a name must never be private again (`fyke.fetcher.names`).

Invariant: whenever the process died, `due` of the next one is no sooner than the end of the rest that was due. Bounded:
the journal is written anew, without rests that are over, once it has `MOST_LINES` and is twice what it must be.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from fyke.core.clock import BOOT_ID
from fyke.core.config import PolitenessSection
from fyke.disk.files import Opened, damaged, write_all, writing
from fyke.disk.sealed import LOST_WRITES, journal_lines, sealed_line, unsealed_line
from fyke.fetcher.delays import download_rest_s

BOOKED_WAIT_S = 5.0  # a longer rest of a host is written into the host book
MOST_LINES = 4096


def address_name(address: str) -> str:
    """Return the name under which the address of a server is noted."""
    return f"@{address}"


class Rests(Opened):
    """The journal at `path`, of requests that last at most `longest_s` seconds.

    `resumed` says that a crawl was here before: then a missing or unbelievable journal makes every name rest. `others`
    does so too, because names may be in others' journals. Raises StateDamaged if a line is not what was written. Raises
    DiskFull or DirectoryError, as any note may. One thread.
    """

    def __init__(
        self,
        path: Path,
        politeness: PolitenessSection,
        longest_s: float,
        now: float,
        *,
        resumed: bool,
        others: bool = False,
        most_lines: int = MOST_LINES,
        boot_id: str | None = None,
    ) -> None:
        self._path = path
        self._boot_id = boot_id or BOOT_ID.read_text().strip()
        self._most_lines = most_lines
        self._book_writes = 0  # how often the book was written, by the notes
        self._by_duration = politeness.delay_factor > 0  # whether a download's duration may ask for a rest
        self._due: dict[str, float] = {}
        self._under_way: dict[str, tuple[float, float]] = {}  # begin, and least rest in seconds
        self._public: set[str] = set()
        self._unknown_host_due = self._unknown_address_due = 0.0
        if (not self._read() and resumed) or others:
            self._unknown_host_due = now + max(BOOKED_WAIT_S, politeness.host_delay_s)
            self._unknown_address_due = now + politeness.address_delay_s
        for name, (began, least_s) in self._under_way.items():
            end = min(now, began + longest_s)
            own_s = 0.0 if name[0] == "@" else download_rest_s(politeness, end - began)
            self._due[name] = end + max(least_s, own_s)
        self._under_way.clear()
        self._write_anew(now)

    def __repr__(self) -> str:
        return f"Rests({len(self._due)} noted, {len(self._under_way)} under way)"

    def due(self, name: str) -> float:
        """Return until when `name` rests (unix seconds), by the notes of an earlier process or of this one."""
        unknown = self._unknown_address_due if name[0] == "@" else self._unknown_host_due
        return self._due.get(name, unknown)

    def dues(self) -> list[tuple[str, float]]:
        """Return every noted name and until when it rests; 0 for one in the book."""
        return list(self._due.items())

    def hosts(self, now: float) -> list[tuple[str, float]]:
        """Return the hosts that rest at `now`, and until when. A host that is being asked has its least rest from now
        on."""
        due = dict(self._due)
        for name, (_, least_s) in self._under_way.items():
            due[name] = max(due.get(name, 0.0), now + least_s)
        return [(name, until) for name, until in due.items() if until > now and name[0] != "@"]

    def begin(self, least: Iterable[tuple[str, float]], now: float) -> None:
        """Note that a request to the names in `least` begins now. Each rests for at least its seconds afterwards."""
        lines = []
        for name, least_s in least:
            if not (least_s or self._by_duration):
                continue  # no rest follows it, whenever it ends
            began = self._under_way.get(name, (now, 0.0))[0]
            self._under_way[name] = began, least_s
            lines.append(_begun(name, began, least_s))
        self._note(lines, now)

    def end(self, dues: Iterable[tuple[str, float]], now: float) -> None:
        """Note that the request to the names in `dues` has ended. Each rests until its unix second; 0 for one in the
        book."""
        lines = []
        for name, due in dues:
            if self._under_way.pop(name, None) is None and due <= now and name not in self._due:
                continue  # its begin was not noted, and nothing rests
            self._due[name] = due
            lines.append(_ended(name, due))
        self._note(lines, now)

    def check_book(self, writes: int) -> None:
        """Raises StateDamaged if the book was written fewer times (`writes`) than an earlier process noted."""
        if writes < self._book_writes:
            raise damaged(self._path.with_name(self._path.name.replace("rests", "hosts") + ".sqlite"), LOST_WRITES)

    @property
    def public(self) -> frozenset[str]:
        """The names that were noted as public."""
        return frozenset(self._public)

    def note_public(self, names: Iterable[str], now: float) -> None:
        """Note that `names` were found at a public address."""
        new = sorted(set(names) - self._public)
        self._public.update(new)
        self._note([_seen_public(name) for name in new], now)

    def note_book(self, writes: int, now: float) -> None:
        """Note that the book was written `writes` times."""
        if writes != self._book_writes:
            self._book_writes = writes
            self._note([sealed_line(f"b {writes}")], now)

    def _note(self, lines: list[str], now: float) -> None:
        if not lines:
            return
        data = "".join(lines).encode()
        with writing(self._path):
            try:
                write_all(self._descriptor, data)
            except OSError:  # a partial line would stay in the middle of the journal
                os.ftruncate(self._descriptor, self._size_bytes)
                os.lseek(self._descriptor, self._size_bytes, os.SEEK_SET)
                raise
        self._size_bytes += len(data)
        self._lines += len(lines)
        if self._lines >= max(self._most_lines, 2 * self._lines_at_least):
            self._write_anew(now)

    def _write_anew(self, now: float) -> None:
        """Write the journal to a new file, without the rests that are over."""
        self._due = {name: due for name, due in self._due.items() if due > now}
        lines = [sealed_line(self._boot_id), sealed_line(f"b {self._book_writes}")]
        lines += [_ended(name, due) for name, due in self._due.items()]
        lines += [_begun(name, *request) for name, request in self._under_way.items()]
        lines += [_seen_public(name) for name in sorted(self._public)]
        data = "".join(lines).encode()
        part = self._path.with_suffix(".part")
        with writing(part):
            new = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                write_all(new, data)
                part.replace(self._path)
            except BaseException:
                os.close(new)
                raise
        self.close()
        self._descriptor, self._size_bytes = new, len(data)
        self._lines = self._lines_at_least = len(lines)

    def _read(self) -> bool:
        """Take in an earlier process's notes; return False if there are none that can be believed."""
        try:
            lines = journal_lines(self._path)
            is_of_this_boot = lines[:1] == [sealed_line(self._boot_id).rstrip()]
            for line in lines[1:]:
                if is_of_this_boot:
                    self._take_in(unsealed_line(line))
                else:
                    self._take_in_public(line)
            if not is_of_this_boot:
                return False
        except FileNotFoundError:
            return False
        except ValueError as error:
            raise damaged(self._path, str(error)) from None
        return True

    def _take_in_public(self, line: str) -> None:
        """Believe a line from before a power cut, which may have torn it, if it names a public name."""
        with suppress(ValueError):
            note = unsealed_line(line)
            if note.startswith("p "):
                self._take_in(note)

    def _take_in(self, note: str) -> None:
        kind, rest = note.split(" ", 1)
        if kind == "b":
            self._book_writes = int(rest)
            return
        if kind == "p":
            self._public.add(rest)
            return
        time, seconds, name = rest.split(" ", 2)
        if kind == ">":
            self._under_way[name] = float(time), float(seconds)
        else:
            self._under_way.pop(name, None)
            self._due[name] = float(time)


def _begun(name: str, began: float, least_s: float) -> str:
    return sealed_line(f"> {began!r} {least_s!r} {name}")


def _ended(name: str, due: float) -> str:
    return sealed_line(f". {due!r} 0 {name}")


def _seen_public(name: str) -> str:
    return sealed_line(f"p {name}")
