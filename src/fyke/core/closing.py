"""What is closed when its block ends."""

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """Who has something to give back, and gives it back once its block ends."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
