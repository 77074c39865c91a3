"""The copies of a URL in the archive, by the CDXJ indexes beside the WARC files.

Asked by readers that show a copy, or that read a revisit record, whose body lies elsewhere. A finished file's index is
sorted, so a URL is found by bisection; that of the file still being written is read through. Invariant: an unreadable
line or record is left out or None, and never raises: one bad line costs one copy.
"""

import json
import zlib
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from fyke.archive.cdxj import REVISIT
from fyke.archive.records import Original
from fyke.archive.surt import surt
from fyke.archive.warc_reading import Broken, metadata_of, read_records
from fyke.core.batches import Kind
from fyke.disk.files import open_file

MOST_CAPTURES = 200  # of a URL, in each file
LINE_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Capture:
    """A record of the archive that can be replayed."""

    url: str
    taken_at: datetime
    media_type: str  # as the server named it
    status: int  # 0 if the protocol has none
    digest: str
    file: str  # below the crawl directory
    offset: int
    length: int

    @property
    def stamp(self) -> str:
        """When it was taken, as 14 digits."""
        return f"{self.taken_at:%Y%m%d%H%M%S}"

    @property
    def order(self) -> tuple[datetime, str, int]:
        """A sort key by time, also of captures within one second."""
        return self.taken_at, self.file, self.offset

    @property
    def is_page(self) -> bool:
        """True if it is the page itself, and no error or redirect; a 304 that stands for it has no status."""
        return self.status in (0, 200)


class Captures:
    """The copies of any URL in the archive of the crawl directory `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __repr__(self) -> str:
        return f"Captures({str(self._folder)!r})"

    def of(self, url: str) -> list[Capture]:
        """Return all copies of `url` (canonical), in no order."""
        key = f"{surt(url)} ".encode()
        found = []
        for path in sorted((self._folder / "warc").glob("*.cdxj*")):
            if path.suffix in (".cdxj", ".open"):
                found += [capture for line in _lines(path, key) if (capture := _capture(line, url)) is not None]
        return list({(one.file, one.offset): one for one in found}.values())

    def probe(self, url: str) -> Capture | None:
        """Return the newest copy of `url` that was fetched as a probe, by the metadata record beside it."""
        probes = [one for one in self.of(url) if self._kind(one) == Kind.PROBE.name.lower()]
        return max(probes, key=lambda one: one.order, default=None)

    def _kind(self, capture: Capture) -> str:
        """Return the `Kind` in the metadata beside `capture`, in small letters; empty if there is none or it cannot be
        read."""
        path = self._folder / capture.file
        with suppress(Broken, OSError, zlib.error):
            itself, *others = islice(read_records(path, begin=capture.offset), 3)
            for one in others:
                if one.get("warc-type") == "metadata" and one.get("warc-concurrent-to") == itself.get("warc-record-id"):
                    return metadata_of(path, one).get("kind", "")
        return ""

    def original(self, revisit: Original) -> Capture | None:
        """Return the record whose body a revisit of `revisit` repeats: the one with its digest, nearest in time."""
        at = datetime.fromisoformat(revisit.date).replace(microsecond=0, tzinfo=UTC)
        same = [one for one in self.of(revisit.url) if one.media_type != REVISIT and one.digest == revisit.digest]
        return min(same, key=lambda one: abs(one.taken_at - at), default=None)


def original_of(fields: Mapping[str, str]) -> Original:
    """Return the record that has the payload of the record with these fields: itself, or the one it refers to."""
    refers = "warc-refers-to-" if fields.get("warc-type") == "revisit" else "warc-"
    digest = fields.get("warc-payload-digest") or fields.get("warc-block-digest", "")
    return Original(fields.get(f"{refers}target-uri", ""), fields.get(f"{refers}date", ""), digest)


def _lines(path: Path, key: bytes) -> deque[bytes]:
    """Return the last `MOST_CAPTURES` lines of the index at `path` that begin with `key`."""
    found: deque[bytes] = deque(maxlen=MOST_CAPTURES)
    is_sorted = path.suffix == ".cdxj"
    with suppress(FileNotFoundError), open_file(path) as file:  # sorted meanwhile: found under its new name next time
        if is_sorted:
            file.seek(_near(file, key))
        for line in file:
            if line.startswith(key) and line.endswith(b"\n"):
                found.append(line)
            elif is_sorted and line > key:
                break
    return found


def _near(file: BinaryIO, key: bytes) -> int:
    """Return the offset of the first line of a sorted file that is not before `key`, or of the line before it."""
    low, high = 0, file.seek(0, 2)
    while low < high:
        middle = (low + high) // 2
        file.seek(middle)
        if middle:
            file.readline()
        begin = file.tell()
        line = file.readline(LINE_BYTES)
        if begin >= high or not line or line >= key:
            high = middle
        else:
            low = begin + len(line)
    return low


def _capture(line: bytes, url: str) -> Capture | None:
    """Return the capture in a line of an index, if it is of `url`."""
    try:
        _, stamp, rest = line.decode().split(" ", 2)
        fields = json.loads(rest)
        if fields["url"] != url:
            return None
        return Capture(
            url,
            datetime.strptime(stamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC),
            _text(fields.get("mime", "")),
            _number(fields.get("status", 0)),
            _text(fields["digest"]),
            f"warc/{Path(_text(fields['filename'])).name}",
            _number(fields["offset"]),
            _number(fields["length"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _text(value: object) -> str:
    """Return `value` as text that can be written. Raises ValueError for half a surrogate pair, which JSON may hold."""
    return str(value).encode().decode()


def _number(value: Any) -> int:
    """Return `value` as a place in a file, or a status. Raises ValueError, TypeError and OverflowError if it is
    neither."""
    number = int(value)
    if not 0 <= number < 1 << 63:
        raise ValueError(f"not a place in a file: {number}")
    return number
