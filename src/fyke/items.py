"""Contents of pages as objects of a class of one's own: the `[[extract]]` table of settings, in Python.

    class Product(fyke.Item, match=r"/product/"):
        name: str = fyke.field("h1")
        price: float = fyke.field("json:Product.offers.price")
        images: list[str] = fyke.field("img::attr(src)", url=True)

    for product in fyke.extract("there", Product):     # out of an archive; of a page at hand: Product.of(page)
        print(product.url, product.price)

A field that a page does not have is None, or an empty list.
"""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from fyke.core.choices import FieldType
from fyke.core.config import build
from fyke.core.errors import ConfigurationError
from fyke.core.pages import Page
from fyke.export.extracting import rows_of
from fyke.harvest.fields import Extractor

_TYPES = {str: FieldType.TEXT, float: FieldType.NUMBER, int: FieldType.INTEGER}
_Item = TypeVar("_Item", bound="Item")


class _Select(NamedTuple):
    select: str
    url: bool


def field(select: str, *, url: bool = False) -> Any:
    """Return a field of an `Item`: a CSS selector, also with `::attr(NAME)`, or `json:` and a path into JSON-LD.

    `url`: the value is a link, and made absolute.
    """
    return _Select(select, url)


class Item:
    """What a page says, or each element `each`, of pages whose URL matches `match` (RE2). A subclass also has the
    fields of its bases, and `__init__` is not called."""

    url: str
    _extractor: ClassVar[Extractor]

    def __init_subclass__(cls, *, match: str = "", each: str = "") -> None:
        """Raises ConfigurationError for a bad selector, or a type that no field can have."""
        hints = get_type_hints(cls)
        declared = {name: value for kind in reversed(cls.__mro__) for name, value in vars(kind).items()}
        selects = {name: value for name, value in declared.items() if isinstance(value, _Select)}
        fields = {name: _described(name, hints.get(name, str), value) for name, value in selects.items()}
        section = {"table": "items", "match": match, "each": each, "fields": fields}
        cls._extractor = Extractor(build({"extract": [section]}, cls.__name__).extract[0])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @classmethod
    def of(cls, page: Page) -> list[Self]:
        """Return the items in `page`."""
        names = cls._extractor.schema.names
        return [cls._made(dict(zip(names, row, strict=True))) for row in cls._extractor.rows(page)]

    @classmethod
    def _made(cls, values: dict[str, Any]) -> Self:
        item = cls.__new__(cls)
        vars(item).update(values)
        return item


def extract(directory: str | PathLike[str], kind: type[_Item]) -> Iterator[_Item]:
    """Yield the items of the class `kind` in the archive of the crawl in `directory`, without a request.

    Raises NotACrawl, StateDamaged.
    """
    for values in rows_of(Path(directory), kind._extractor):
        yield kind._made(values)


def _described(name: str, hint: Any, field: _Select) -> dict[str, Any]:
    arguments = [one for one in get_args(hint) if one is not type(None)]
    if get_origin(hint) is not list and len(arguments) == 1:  # Optional
        hint, arguments = arguments[0], list(get_args(arguments[0]))
    many = get_origin(hint) is list
    plain = arguments[0] if many else hint
    if plain not in _TYPES or get_origin(hint) is Union:
        raise ConfigurationError(f"{name} is {hint}: make it str, float, int, or a list of one of these")
    return {"select": field.select, "type": FieldType.URL if field.url else _TYPES[plain], "many": many}
