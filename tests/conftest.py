"""What holds for all tests: none has a time limit of milliseconds, since machines are busy."""

from hypothesis import settings

settings.register_profile("busy", deadline=None)
settings.load_profile("busy")
