"""A plug-in that cannot be used is one line that names it, whatever is wrong with it."""

from pathlib import Path

import pytest

from fyke.core.errors import PluginError
from fyke.core.plugins import ProcessingModule, ProtocolModule, UrlFilter, load_plugin

PLUGINS = """
class Raises:
    def __init__(self):
        raise RuntimeError("no key")

class Lacks:
    pass

class Fetches:
    def fetch(self, visit, address, done): ...

class Nothing(Fetches):
    schemes = None

class OneText(Fetches):
    schemes = "news"

class Numbers(Fetches):
    schemes = [5]

class Breaks(Fetches):
    @property
    def schemes(self):
        raise OSError("gone")

class Reads:
    media_types = [None]
    def process(self, page): ...
"""


@pytest.mark.parametrize(
    ("name", "kind", "protocol", "said"),
    [
        ("wrong:Any", "filters", UrlFilter, "SyntaxError"),
        ("right:Missing", "filters", UrlFilter, "no attribute 'Missing'"),
        ("right:Raises", "filters", UrlFilter, "RuntimeError: no key"),
        ("right:Lacks", "filters", UrlFilter, "is not a UrlFilter: it lacks accept;"),
        ("right:Nothing", "protocols", ProtocolModule, "is not a ProtocolModule"),
        ("right:OneText", "protocols", ProtocolModule, "is not a ProtocolModule"),
        ("right:Numbers", "protocols", ProtocolModule, "is not a ProtocolModule"),
        ("right:Breaks", "protocols", ProtocolModule, "OSError: gone"),
        ("right:Reads", "processors", ProcessingModule, "is not a ProcessingModule"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str, protocol: type, said: str
) -> None:
    (tmp_path / "right.py").write_text(PLUGINS)
    (tmp_path / "wrong.py").write_text("def (")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginError, match=said) as raised:
        load_plugin(name, kind, protocol)
    assert name in str(raised.value)
