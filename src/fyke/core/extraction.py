"""Tables made of pages: the settings `[[extract]]`."""

import re
from typing import Self

from pydantic import Field, model_validator

from fyke.core.choices import FieldType
from fyke.core.settings import Section

RESERVED_TABLES = {"pages", "links", "hosts", "domains", "near", "pagerank", "domainrank", "mended"}


class FieldSection(Section):
    """The source of a column of a table."""

    select: str = Field("", description="A CSS selector, also with ::attr(NAME), or json: and a path into JSON-LD.")
    type: FieldType = Field(FieldType.TEXT, description="text, number, integer or url.")
    many: bool = Field(False, description="Keep all matches, as a list; otherwise only the first.")


class ExtractSection(Section):
    """A table of fields of pages, made while crawling. There may be several."""

    table: str = Field(description="Name of the table: its files are tables/NAME-*.parquet.")
    match: str = Field("", description="Only pages whose URL matches this RE2 expression; empty: all.")
    each: str = Field(
        "",
        description="A CSS selector: a row for each element that matches; empty: a row for each page. Rows without any"
        " value are left out.",
    )
    fields: dict[str, str | FieldSection] = Field(description="Columns: a selector, or a table with select and type.")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for name in (self.table, *self.fields):
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name):
                raise ValueError(f"{name!r} is not a name for a table or column: use small letters, digits and _")
        if self.table in RESERVED_TABLES:
            raise ValueError(f"the table {self.table} exists already: choose another name")
        if not self.fields or "url" in self.fields:
            raise ValueError("name the fields; the column url is always there")
        return self


def different_tables(tables: list[ExtractSection]) -> list[ExtractSection]:
    """Return `tables` if each has a name of its own. Raises ValueError otherwise."""
    names = [table.table for table in tables]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{names.count(name)} tables have the name {name}: give each its own name")
    return tables
