"""Progress of long work, told while it goes on to its display, such as `fyke.progress`."""

from collections.abc import Callable

Tell = Callable[[str, int, int], None]  # the work, how much is done, and of how much (0: unknown)
