"""The files that a checkpoint must make safe before it counts, and files that may go once it does.

Both writers of the archive keep one, for the WARC files and for the tables: they name files that they wrote or no
longer need. The keeper syncs the first and then says `durable`.

Invariant: a file is deleted only when a state taken after it was spent is safe on disk.
"""

from pathlib import Path

from fyke.disk.files import writing


class Safety:
    """The files that one writer has written and spent, and since when."""

    def __init__(self) -> None:
        self._written: set[Path] = set()  # since the last `dirty_files`
        self._syncing: set[Path] = set()  # returned by it, and not yet known to be safe
        self._spent: list[Path] = []
        self._spent_when_durable: list[Path] = []  # spent before the last state

    def wrote(self, *paths: Path) -> None:
        """Note that these files grew, or these folders have new names."""
        self._written.update(paths)

    def spend(self, path: Path) -> None:
        """Note that only states taken before now need `path`."""
        self._written.discard(path)
        self._spent.append(path)

    def stated(self) -> None:
        """Note that a state is taken now."""
        self._spent_when_durable = list(self._spent)

    def dirty_files(self) -> list[Path]:
        """Return what must be fsynced for that state to hold: files, and folders with new names."""
        self._syncing = {path for path in self._syncing | self._written if path.exists()}
        self._written = set()
        return sorted(self._syncing)

    def durable(self) -> None:
        """Note that the manifest with that state is safe; delete files that only older ones need."""
        for path in self._spent_when_durable:
            with writing(path):
                path.unlink(missing_ok=True)
        self._spent = [path for path in self._spent if path not in self._spent_when_durable]
        self._spent_when_durable = []
        self._syncing = set()
