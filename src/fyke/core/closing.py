"""A base for context managers with `close`."""

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """An object that is closed when its block ends."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
