"""What holds for all tests: none has a time limit of milliseconds, since machines are busy; each may be interrupted."""

import signal

from hypothesis import settings

settings.register_profile("busy", deadline=None)
settings.load_profile("busy")

# A shell lets what it starts in the background ignore Ctrl-C, and processes hand that down to those they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
