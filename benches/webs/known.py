"""The webs there are, by name."""

from webs import Web
from webs.plain import PLAIN

WEBS: dict[str, Web] = {web.name: web for web in (PLAIN,)}
