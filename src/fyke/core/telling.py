"""How far a long piece of work is, told as it goes on to whoever shows it, such as `fyke.progress`."""

from collections.abc import Callable

Tell = Callable[[str, int, int], None]  # what is done, how much of it, and of how much; 0 where nobody knows
