"""One word, one meaning: what stands once in a newcomer's head has one name in the code."""

import ast
import re
from collections import Counter
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "fyke"


def test_every_class_has_a_name_of_its_own() -> None:
    """Also apart from the underscore of what is private to a file."""
    names = Counter(one.name.strip("_") for one in _classes())
    assert not [name for name, times in names.items() if times > 1]


def test_what_is_printed_of_an_object_names_its_class() -> None:
    shown = [(one.name, name) for one in _classes() for name in _shown_names(one)]
    assert len(shown) > 50
    assert not [pair for pair in shown if pair[0] != pair[1]]


def _classes() -> list[ast.ClassDef]:
    trees = [ast.parse(path.read_text()) for path in SRC.rglob("*.py")]
    return [one for tree in trees for one in ast.walk(tree) if isinstance(one, ast.ClassDef)]


def _shown_names(of: ast.ClassDef) -> list[str]:
    """The names before a bracket with which what its `__repr__` returns begins."""
    methods = [one for one in of.body if isinstance(one, ast.FunctionDef) and one.name == "__repr__"]
    returned = [one.value for method in methods for one in ast.walk(method) if isinstance(one, ast.Return)]
    found = [re.match(r"f?['\"](\w+)\(", ast.unparse(value)) for value in returned if value is not None]
    return [match[1] for match in found if match]
