"""Coroutines of tests, run on an event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

PATIENCE_S = 200  # less than the time that a test has

Result = TypeVar("Result")


def on_loop(
    coroutine: Coroutine[Any, Any, Result],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
) -> Result:
    """Run `coroutine` on a loop of its own; what the loop would only log fails the test."""
    failures: list[dict[str, Any]] = []

    async def main() -> Result:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        return await asyncio.wait_for(coroutine, PATIENCE_S)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        result = runner.run(main())
    assert not failures, failures
    return result
