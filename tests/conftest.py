"""What holds for all tests: none has a time limit of milliseconds, since machines are busy; each may be interrupted.

`make test` tries the same examples each time, so that what passed passes again; `make fuzz` draws others.
"""

import os
import signal

from hypothesis import settings

settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("drawn", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# A shell lets what it starts in the background ignore Ctrl-C, and processes hand that down to those they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
