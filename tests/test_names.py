"""One word, one meaning: what stands once in a newcomer's head has one name in the code."""

import ast
from collections import Counter
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "fyke"


def test_every_class_has_a_name_of_its_own() -> None:
    """Also apart from the underscore of what is private to a file."""
    trees = [ast.parse(path.read_text()) for path in SRC.rglob("*.py")]
    names = Counter(one.name.strip("_") for tree in trees for one in ast.walk(tree) if isinstance(one, ast.ClassDef))
    assert not [name for name, times in names.items() if times > 1]
