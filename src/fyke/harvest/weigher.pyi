from typing import Any

def weigh(
    content: bytes, words: tuple[bytes, ...], blocks: Any, grams: Any, domain: int, remember: bool
) -> tuple[int, int, bytes]: ...
