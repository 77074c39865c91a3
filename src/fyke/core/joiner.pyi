from collections.abc import Callable

Keys = tuple[int, int] | None

def join(
    hrefs: list[str],
    base: tuple[bytes, ...],
    url_size: int,
    room: int,
    known: dict[bytes, Keys],
    keys_of_root: Callable[[bytes], Keys],
) -> tuple[list[bytes], list[int], list[tuple[int, tuple[int, int]]], bool]: ...
