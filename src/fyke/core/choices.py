"""The choices of some settings.

Apart from `fyke.core.config`, so that the command line can name the choices without loading that.
"""

from enum import StrEnum


class Scope(StrEnum):
    """How far from the seeds links are followed. The target of a seed's redirect counts as a seed."""

    SEEDS = "seeds"  # only the seeds
    PREFIX = "prefix"  # below a seed's folder
    HOST = "host"  # on a seed's host
    DOMAIN = "domain"  # in a seed's pay-level domain
    WEB = "web"  # anywhere


class FieldType(StrEnum):
    """The type of a field of an extracted table."""

    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    URL = "url"


class Enforcement(StrEnum):
    """The treatment of URLs whose domain is over its budget."""

    BEAST = "beast"
    NAIVE = "naive"
    NONE = "none"
