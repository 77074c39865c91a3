"""Which files a checkpoint must make safe before it counts, and which may go once it does.

What both writers of the archive keep, the WARC files' and the tables': they name what they wrote and what they have
no more use for; the keeper syncs the first and then says `durable`.

Invariant: a file is deleted only when a state taken after it was spent is safe on disk.
"""

from pathlib import Path

from fyke.disk.files import writing


class Safety:
    """What one writer has written and spent since when."""

    def __init__(self) -> None:
        self._written: set[Path] = set()  # since the last `dirty_files`
        self._syncing: set[Path] = set()  # given out by it, and not yet known to be safe
        self._spent: list[Path] = []
        self._spent_when_durable: list[Path] = []  # those of a state that was taken

    def wrote(self, *paths: Path) -> None:
        """These files grew, or these folders have new names in them."""
        self._written.update(paths)

    def spend(self, path: Path) -> None:
        """`path` is needed only by states taken before now."""
        self._written.discard(path)
        self._spent.append(path)

    def stated(self) -> None:
        """A state is taken now."""
        self._spent_when_durable = list(self._spent)

    def dirty_files(self) -> list[Path]:
        """What must be fsynced for that state to hold: files, and folders with new names."""
        self._syncing = {path for path in self._syncing | self._written if path.exists()}
        self._written = set()
        return sorted(self._syncing)

    def durable(self) -> None:
        """The manifest that holds that state is safe: what only older ones need goes."""
        for path in self._spent_when_durable:
            with writing(path):
                path.unlink(missing_ok=True)
        self._spent = [path for path in self._spent if path not in self._spent_when_durable]
        self._spent_when_durable = []
        self._syncing = set()
