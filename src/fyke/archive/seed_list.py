"""The seeds that came from a list: `seeds.txt` in a crawl's directory, a canonical URL a line, in the order given.

The agent writes it once, when the crawl begins, and reads it at every start; explanations read it too. Invariant: only
a batch of it is in memory, however long the list.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path

from fyke.archive.checksum import OTHER_BYTES, checksum_holds, is_gone, write_checksum
from fyke.core.errors import OtherCrawl, StateDamaged
from fyke.core.urls import Locator, locate
from fyke.disk.files import written_whole

NAME = "seeds.txt"
BATCH = 1 << 15


class SeedList:
    """The seeds in the file `seeds.txt` of the crawl directory `folder`; none without that file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / NAME

    def __repr__(self) -> str:
        return f"SeedList({str(self.path)!r})"

    def __bool__(self) -> bool:
        return self.path.is_file()

    def __len__(self) -> int:
        if not self:
            return 0
        with self.path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))

    def urls(self) -> Iterator[str]:
        """Yield the URLs, in order. Raises StateDamaged."""
        self.verify()
        if not self:
            return
        try:
            with self.path.open(encoding="ascii") as file:
                yield from (line.rstrip("\n") for line in file)
        except (OSError, UnicodeDecodeError) as error:
            raise StateDamaged(f"{self.path} cannot be read ({error}): restore it from a copy") from None

    def fault(self) -> str:
        """Return what is wrong with the list; empty if nothing is. Without its checksum nobody knows."""
        if is_gone(self.path):
            return "it is gone"
        return OTHER_BYTES if self and checksum_holds(self.path) is False else ""

    def verify(self) -> None:
        """Raise StateDamaged if the list is not as it was written."""
        if what := self.fault():
            raise StateDamaged(f"{self.path} is damaged ({what}): restore it from a copy")

    def batches(self) -> Iterator[Sequence[Locator]]:
        """Yield the seeds, `BATCH` at a time. Raises StateDamaged."""
        try:
            urls = self.urls()
            while batch := [locate(url) for url in islice(urls, BATCH)]:
                yield batch
        except ValueError as error:
            raise StateDamaged(f"{self.path} is damaged ({error}): restore it from a copy") from None

    def write(self, urls: Iterable[str]) -> None:
        """Keep `urls`, which are canonical. Raises DiskFull, DirectoryError."""
        with written_whole(self.path) as part, part.open("w", encoding="ascii") as file:
            file.writelines(f"{url}\n" for url in urls)
            file.flush()
            write_checksum(part, self.path)

    def compare(self, urls: Iterable[str]) -> None:
        """Raise OtherCrawl if `urls` are not those of the list."""
        for place, (ours, asked) in enumerate(zip_longest(self.urls(), urls), 1):
            if ours != asked:
                raise OtherCrawl(
                    f"{self._folder} holds a crawl of another list of seeds (seed {place:,} is {ours or 'missing'}, not"
                    f" {asked or 'missing'}): choose another folder with --into, or resume that one with fyke crawl"
                    f" --into {self._folder}"
                )
