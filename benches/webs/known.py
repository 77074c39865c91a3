"""All webs, by name."""

from webs import Web
from webs.broad import BROAD
from webs.endless import ENDLESS
from webs.plain import PLAIN
from webs.today import TODAY

WEBS: dict[str, Web] = {web.name: web for web in (PLAIN, BROAD, TODAY, ENDLESS)}
