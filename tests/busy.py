"""Light work is going on: as much of it ended as makes a crawl busy."""

from fyke.core.pace import MANY, Pace


def note_busy(pace: Pace) -> None:
    """Note that light work is going on."""
    for _ in range(MANY):
        pace.note_light()
