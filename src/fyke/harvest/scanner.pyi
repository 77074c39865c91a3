from collections.abc import Callable

def scan(
    content: bytes, product: bytes, decode: Callable[[bytes], str], fewer: Callable[[list[str]], list[str]]
) -> tuple[list[str], list[str], list[tuple[str, str, str]], bytes] | None: ...
