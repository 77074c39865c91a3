"""What a piece of work takes, seen in a process in which nothing else allocates."""

import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


def traced(work: Callable[Given, Result], *given: Given.args, **named: Given.kwargs) -> tuple[Result, int]:
    """What `work` returns, and the most bytes that it held beyond those before it. All of it must be picklable."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_traced, work, given, named).result()  # type: ignore[arg-type]


def _traced(work: Callable[..., Result], given: tuple[object, ...], named: dict[str, object]) -> tuple[Result, int]:
    tracemalloc.start()
    try:
        return work(*given, **named), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
