"""Pages of the documentation made from the program: commands, settings, tables, Python interface, architecture.

A hook of mkdocs. What a key, an option or a function does is said where it is defined, and nowhere else.
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from mkdocs.structure.files import File, Files

import fyke
from fyke.archive.schemas import SCHEMAS
from fyke.cli.manual import described
from fyke.core.config import Config, literal
from fyke.core.extraction import ExtractSection, FieldSection
from fyke.core.outcomes import Outcome
from fyke.core.site import SiteSection

ROOT = Path(__file__).parents[1]


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are no files."""
    pages = {
        "reference/commands.md": commands(),
        "reference/settings.md": settings(),
        "reference/tables.md": tables(),
        "reference/python.md": python(),
        "architecture.md": (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"),
    }
    for path, lines in pages.items():
        text = lines if isinstance(lines, str) else "\n".join(lines)
        files.append(File.generated(config, path, content=text))
    return files


def commands() -> Iterator[str]:
    """Every command with its options, as `--help` has them."""
    yield "# Commands\n\n`fyke COMMAND -h` prints the same. `fyke --install-completion` has a shell complete them.\n"
    for one in described():
        yield f"\n## fyke {one.name}\n\n    {one.usage}\n"
        for text, kept in one.text:
            yield "\n" + ("\n".join(f"    {line}" for line in text.splitlines()) if kept else _plain(text)) + "\n"
        yield "\n| option | |\n|---|---|"
        yield from (f"| `{_cell(written)}` | {_plain(_cell(said))} |" for written, said in one.options)


def settings() -> Iterator[str]:
    """Every key of `fyke.toml`."""
    yield "# Settings\n\n`fyke.toml` in a crawl's directory has every key; `fyke crawl --config` takes some or all.\n"
    for name, section in Config().sections:
        yield from _table(f"[{name}]", type(section), section)
    yield from _table("[[site]]", SiteSection)
    yield from _table("[[extract]]", ExtractSection)
    yield from _table("[[extract]] fields.NAME", FieldSection)


def _table(title: str, kind: Any, defaults: Any = None) -> Iterator[str]:
    yield f"\n## {title}\n\n{_plain(kind.__doc__)}\n\n| key | default | |\n|---|---|---|"
    for key, field in kind.model_fields.items():
        value = getattr(defaults, key) if defaults is not None else field.default
        shown = "" if field.is_required() or value is None else f"`{_cell(literal(value))}`"
        yield f"| `{key}` | {shown} | {_plain(_cell(field.description or ''))} |"


def tables() -> Iterator[str]:
    """Every column of every table, and how a visit can end."""
    yield "# Tables\n\nThe same sentences are in the Parquet files, as metadata of their columns.\n"
    for name, schema in SCHEMAS.items():
        yield f"\n## {name}\n\n{_plain(_said(schema.metadata))}\n\n| column | type | |\n|---|---|---|"
        for field in schema:
            kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            yield f"| `{field.name}` | {_cell(str(kind))} | {_plain(_cell(_said(field.metadata)))} |"
    yield "\n## Outcomes\n\nWords of the column `outcome`, and of `fyke why`.\n\n| outcome | |\n|---|---|"
    for value, meaning in re.findall(r'^    [A-Z_]+ = "(\w+)"  # (.+)$', inspect.getsource(Outcome), re.MULTILINE):
        yield f"| `{value}` | {_plain(_cell(meaning))} |"


def _said(metadata: dict[bytes, bytes]) -> str:
    return metadata[b"description"].decode()


def python() -> Iterator[str]:
    """What `import fyke` gives."""
    yield f"# Python\n\n{inspect.getdoc(fyke)}\n"
    for name in fyke.__all__:
        thing = getattr(fyke, name)
        if not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        written = "" if getattr(thing, "_is_protocol", False) else f"{_signature(name, thing)}\n\n"
        yield f"\n## fyke.{name}\n\n{written}{inspect.getdoc(thing) or ''}\n"
        for member, value in vars(thing).items() if inspect.isclass(thing) else ():
            said = inspect.getdoc(value) if not member.startswith("_") else None
            if said and (inspect.isfunction(value) or isinstance(value, property | classmethod)):
                plain = value.__func__ if isinstance(value, classmethod) else value
                written = f"`{member}`" if isinstance(value, property) else _signature(member, plain).strip("\n")
                yield f"\n### {name}.{member}\n\n{written}\n\n{said}\n"


def _signature(name: str, thing: Any) -> str:
    try:
        return f"    {name}{inspect.signature(thing)}"
    except (TypeError, ValueError):
        return f"    {name}"


def _plain(text: str) -> str:
    """Words, in which Markdown finds nothing of its own."""
    return " ".join(text.split()).replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[").replace("_", "\\_")


def _cell(text: str) -> str:
    return text.replace("|", "&#124;" if "`" not in text else "\\|")
