"""Which Fyke is this?"""

from importlib.metadata import version

VERSION = version("fyke")
