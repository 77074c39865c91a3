"""Queries of links, in the bytes of the page they are on: `?q=поиск` as its server expects it.

Called by the HTML module, and by readers of links from a page's tree (`fyke.search`, `fyke.serve`). The URL Standard
percent-encodes the query of a link by the encoding of its document (4.3, "query state"; 1.3, "percent-encode after
encoding"). `ada_url` knows only UTF-8, so characters beyond ASCII are encoded here, before links are resolved. GBK and
GB18030 are one codec here (`fyke.harvest.charset`): both encode as GBK, the commoner.

Invariant: a link of ASCII characters, or on a page in UTF-8 or UTF-16, stays as it is. In other links only the query
changes, and becomes ASCII.
"""

import re
import unicodedata
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from urllib.parse import urlsplit

from fyke.core.markup import TakesLong
from fyke.core.pace import breathe, in_haste
from fyke.core.pages import ISO_2022_JP, OWN_CODECS, PageLinks
from fyke.core.urls import MAX_HREF_CHARS
from fyke.harvest.decoders import single_byte_table

_IN_UTF8 = frozenset({"", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "x-whatwg-replacement"})
_SPECIAL = frozenset({"http", "https", "ftp", "file"})  # the query of other schemes is always UTF-8
_LINK = re.compile(r"([^?#]*\?)([^#]*)(#.*)?", re.DOTALL)
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_REMOVED = str.maketrans("", "", "\t\n\r")
_STRIPPED = "".join(map(chr, range(0x21)))
_ENCODED = frozenset([*range(0x21), *b"\"#<>'", *range(0x7F, 0x100)])
HASTY_CHARS = 1 << 15  # of links, in haste: 50 ms
_REMEMBERED = 1 << 14  # characters of one encoding
_BIG5, _GB18030, _EUC_KR = f"{OWN_CODECS}big5", f"{OWN_CODECS}gb18030", "cp949"
_SHIFT_JIS, _EUC_JP = "cp932", f"{OWN_CODECS}euc-jp"
_HALF_WIDTH_MARKS = {"\uff9e": "\u309b", "\uff9f": "\u309c"}
_NOT_ENCODED = "\ue5e5"  # its place in GB18030 is that of a blank
_JIS_LEADS = (*range(0x81, 0xA0), *range(0xE0, 0xF0))
_SHIFT_JIS_LEADS = (*range(0x81, 0xA0), *range(0xE0, 0xED), *range(0xFA, 0xFD))  # IBM's rows, not NEC's copy of them
_TO_ASCII, _TO_ROMAN, _TO_JIS = b"\x1b(B", b"\x1b(J", b"\x1b$B"


def encode_queries(links: PageLinks, charset: str) -> None:
    """Encode the queries of all `links` of a page in `charset` that need it. Raises TakesLong in haste."""
    if charset not in _IN_UTF8:
        every = chain(links.pages, links.nofollow, links.requisites) if in_haste() else ()
        if sum(len(href) for href in every if not href.isascii()) > HASTY_CHARS:
            raise TakesLong
        links.pages = with_queries_encoded(links.pages, links.base, charset)
        links.nofollow = with_queries_encoded(links.nofollow, links.base, charset)
        links.requisites = with_queries_encoded(links.requisites, links.base, charset)


def with_queries_encoded(hrefs: list[str], base: str, charset: str) -> list[str]:
    """Return `hrefs`, found on a page in `charset` (a name of `charset_of`), with their queries as a browser sends
    them."""
    if charset in _IN_UTF8 or all(map(str.isascii, hrefs)):
        return hrefs
    return [href if href.isascii() else _with_query_encoded(href, base, charset) for href in hrefs]


def _with_query_encoded(href: str, base: str, charset: str) -> str:
    breathe()
    if len(href) > MAX_HREF_CHARS:
        return href  # too long for a link, as it is or encoded
    plain = href.strip(_STRIPPED).translate(_REMOVED)
    link = _LINK.fullmatch(plain)
    if link is None or link[2].isascii():
        return href
    scheme = _SCHEME.match(plain)
    if (scheme[1].lower() if scheme else urlsplit(base).scheme) not in _SPECIAL:
        return href
    return f"{link[1]}{query_encoded(link[2], charset)}{link[3] or ''}"


def query_encoded(query: str, charset: str) -> str:
    """Return `query` as ASCII. A character that `charset` lacks becomes a numeric character reference, as in forms."""
    return _iso2022_jp(query) if charset == ISO_2022_JP else query.translate(_escapes(charset))


class _Escapes(dict[int, str]):
    """The escaped form of each character in queries of pages in `charset`, as `str.translate` asks for it."""

    def __init__(self, charset: str) -> None:
        self._charset = charset

    def __missing__(self, number: int) -> str:
        escaped = character = chr(number)
        if not character.isascii():
            data = _bytes_of(character, self._charset)
            escaped = _lacking(character) if data is None else _percent_encoded(data)
        if len(self) < _REMEMBERED:
            self[number] = escaped
        return escaped


@lru_cache(maxsize=64)
def _escapes(charset: str) -> _Escapes:
    return _Escapes(charset)


def _lacking(character: str) -> str:
    number = ord(character)
    return f"%26%23{0xFFFD if 0xD800 <= number < 0xE000 else number}%3B"


def _percent_encoded(data: bytes) -> str:
    return "".join([f"%{byte:02X}" if byte in _ENCODED else chr(byte) for byte in data])


def _bytes_of(character: str, charset: str) -> bytes | None:
    """Return one non-ASCII character by the encoders of the Encoding Standard; None if `charset` lacks it."""
    if charset in (_SHIFT_JIS, _EUC_JP):
        return _shift_jis(character) if charset == _SHIFT_JIS else _euc_jp(character)
    if charset == _BIG5:
        return _big5(character)
    if charset == _GB18030:
        return b"\x80" if character == "€" else _two_bytes(character, "gb18030")
    if charset == _EUC_KR:
        return _two_bytes(character, charset)
    byte = _single_bytes(charset).get(character)
    return None if byte is None else bytes([byte])


def _big5(character: str) -> bytes | None:
    """Encode as Microsoft does where it differs; the Hong Kong part is only read."""
    data = _two_bytes(character, "big5hkscs") or _two_bytes(character, "cp950")
    if data is None or data[0] < 0xA1:
        return None
    return data if data.decode("cp950", "replace") in (character, "\ufffd") or data[0] >= 0xC6 else None


def _two_bytes(character: str, codec: str) -> bytes | None:
    try:
        data = character.encode(codec)
    except UnicodeEncodeError:
        return None
    return data if len(data) == 2 and character not in _NOT_ENCODED else None


@lru_cache(maxsize=64)
def _single_bytes(charset: str) -> dict[str, int]:
    table = single_byte_table(charset)
    return {character: byte for byte, character in enumerate(table) if byte >= 0x80 and character != "\ufffe"}


def _shift_jis(character: str) -> bytes | None:
    if character in "¥‾":
        return b"\\" if character == "¥" else b"~"
    if character == "\x80" or "\uff61" <= character <= "\uff9f":
        return character.encode("cp932")
    return _double_bytes(*_SHIFT_JIS_LEADS).get(character)


def _euc_jp(character: str) -> bytes | None:
    if character in "¥‾":
        return b"\\" if character == "¥" else b"~"
    if "\uff61" <= character <= "\uff9f":
        return b"\x8e" + character.encode("cp932")
    jis = _jis0208(character)
    return None if jis is None else bytes([jis[0] | 0x80, jis[1] | 0x80])


def _iso2022_jp(query: str) -> str:
    written: list[str] = []
    mode = _TO_ASCII
    for character in query:
        if "\uff61" <= character <= "\uff9f":
            character = _HALF_WIDTH_MARKS.get(character) or unicodedata.normalize("NFKC", character)
        wanted, code = mode, _jis0208(character)
        if character in "\x0e\x0f\x1b":
            wanted, text = (_TO_ASCII if mode == _TO_JIS else mode), _lacking("\ufffd")
        elif character in "¥‾":
            wanted, text = _TO_ROMAN, "\\" if character == "¥" else "~"
        elif character.isascii():
            keeps = mode == _TO_ASCII or (mode == _TO_ROMAN and character not in "\\~")
            wanted, text = (mode if keeps else _TO_ASCII), _percent_encoded(character.encode())
        elif code is not None:
            wanted, text = _TO_JIS, _percent_encoded(code)
        else:
            wanted, text = (_TO_ASCII if mode == _TO_JIS else mode), _lacking(character)
        written.append(_percent_encoded(wanted) + text if wanted != mode else text)
        mode = wanted
    if mode != _TO_ASCII:
        written.append(_percent_encoded(_TO_ASCII))
    return "".join(written)


def _jis0208(character: str) -> bytes | None:
    """Return the two bytes of seven bits that stand for `character` in JIS X 0208, with NEC's rows."""
    found = _double_bytes(*_JIS_LEADS).get(character)
    if found is None:
        return None
    lead, trail = found
    place = (lead - (0x81 if lead < 0xA0 else 0xC1)) * 188 + trail - (0x40 if trail < 0x7F else 0x41)
    return bytes([place // 94 + 0x21, place % 94 + 0x21])


@lru_cache(maxsize=2)
def _double_bytes(*leads: int) -> dict[str, bytes]:
    """Return the characters that Shift_JIS writes as two bytes, the first one of `leads`; the earlier of two places
    counts."""
    found: dict[str, bytes] = {}
    for lead in leads:
        for trail in [*range(0x40, 0x7F), *range(0x80, 0xFD)]:
            with suppress(UnicodeDecodeError):
                found.setdefault(bytes([lead, trail]).decode("cp932"), bytes([lead, trail]))
    return found | {"\u2212": found["\uff0d"]}
