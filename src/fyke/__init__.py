"""Fyke: a web crawler that is polite, loses nothing, and keeps its memory bounded."""

from importlib.metadata import version

__version__ = version("fyke")
