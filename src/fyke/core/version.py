"""The version of Fyke."""

from importlib.metadata import version

VERSION = version("fyke")
