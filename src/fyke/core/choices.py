"""What some settings choose between.

Apart from `fyke.core.config`, so that the command line can name the choices without loading what reads settings.
"""

from enum import StrEnum


class Scope(StrEnum):
    """How far from the seeds links are followed; where a seed redirects to counts as a seed."""

    SEEDS = "seeds"  # the seeds, and nothing that they link to
    PREFIX = "prefix"  # below a seed's folder
    HOST = "host"  # on a seed's host
    DOMAIN = "domain"  # in a seed's pay-level domain
    WEB = "web"  # anywhere


class FieldType(StrEnum):
    """What a field of an extracted table is."""

    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    URL = "url"


class Enforcement(StrEnum):
    """What becomes of URLs whose domain is over its budget."""

    BEAST = "beast"
    NAIVE = "naive"
    NONE = "none"
