"""What holds for all tests: none has a time limit of milliseconds, since machines are busy; each may be interrupted.

`make test` tries the same examples each time, so that what passed passes again; `make fuzz` draws others.
"""

import faulthandler
import os
import signal
import sys
from collections.abc import Iterator
from inspect import iscoroutinefunction

import pytest
from hypothesis import settings

from looping import on_loop

settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("drawn", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# A shell lets what it starts in the background ignore Ctrl-C, and processes hand that down to those they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

HANGS_S = 900.0  # longer than any test may take


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """A test that hangs in a library hears no signal: its process ends, and another goes on with the rest."""
    faulthandler.dump_traceback_later(HANGS_S, exit=True, file=sys.__stderr__)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test may be a coroutine: it has a loop of its own."""
    if not iscoroutinefunction(pyfuncitem.obj):
        return None
    on_loop(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
    return True
