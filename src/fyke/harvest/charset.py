"""The characters that the bytes of a page mean, by the HTML Standard (13.2.3) and the Encoding Standard.

Called by `fyke.harvest.parser` once a page of text. In order: byte order mark, the label the server gave, the label in
the first 1024 bytes, that of a `<meta>` anywhere in the tree of an HTML page, then the bytes themselves: UTF-8 if they
decode, otherwise a statistical guess, otherwise windows-1252. Differs from the standard: a UTF-8 page that declares
nothing is recognised over its whole length.

Invariant: the name returned is a codec Python knows. Decoding by it with `errors="replace"` never raises, and gives the
characters a browser would show. The labels are the Encoding Standard's. The codecs are Python's if these agree with it,
otherwise ours (`fyke.harvest.decoders`).
"""

import codecs
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from io import BytesIO

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

from fyke.core.document import Document, first, read_on
from fyke.core.markup import MAX_BYTES, tree_of
from fyke.core.pages import ISO_2022_JP, OWN_CODECS
from fyke.harvest.decoders import differing

DEFAULT = "windows-1252"

_PRESCAN_BYTES = 1024
_SAMPLE_BYTES = 4096
_LABEL_CHARS = 256  # with blanks around it

# Python's codec for a name of resiliparse, if a wider one is meant.
_CODECS = {
    "cp1252": DEFAULT,
    "gbk": f"{OWN_CODECS}gb18030",
    "gb2312": f"{OWN_CODECS}gb18030",
    "gb18030": f"{OWN_CODECS}gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "cp949": "cp949",
    "euc_jp": f"{OWN_CODECS}euc-jp",
    "iso2022_jp": ISO_2022_JP,
    "big5": f"{OWN_CODECS}big5",
    "iso8859-11": "cp874",
    "iso8859-1": DEFAULT,
    "ascii": DEFAULT,
}
_REPLACED = frozenset({"csiso2022kr", "hz-gb-2312", "iso-2022-cn", "iso-2022-cn-ext", "iso-2022-kr", "replacement"})
_LABELS = {
    "utf8": "utf-8",
    "utf-8": "utf-8",
    "x-user-defined": f"{OWN_CODECS}user-defined",
    "x-mac-cyrillic": "mac_cyrillic",
    "x-mac-ukrainian": "mac_cyrillic",
    "utf-16be": "utf-16-be",
    "unicodefffe": "utf-16-be",
} | dict.fromkeys(_REPLACED, f"{OWN_CODECS}replacement")
_WIDE = frozenset({"utf-16-le", "utf-16-be"})
_WITH_GAPS = ("windows-", "cp874", "koi8-u")  # Python's codecs that differ from the standard in a few bytes

_PIECE_BYTES = 1 << 20  # decoded at a time
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))

# The prescan's tokens; blanks are the standard's five. A quote without an end takes all that follows, as there.
_MARKUP = re.compile(rb"<(?:(!--)|(meta)(?=[\t\n\f\r /])|(/?[a-z])|[!/?])", re.IGNORECASE)
_NAME_END = re.compile(rb"[\t\n\f\r >]")
_ATTRIBUTE = re.compile(
    rb"[\t\n\f\r /]*+(=?[^\t\n\f\r /=>]*+)(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+"
    rb"(?:\"([^\"]*+)\"?|'([^']*+)'?|([^\t\n\f\r >]*+)))?"
)
_IN_CONTENT = re.compile(
    r"charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:\"([^\"]*)\"|'([^']*)'|(?![\"'])([^\t\n\f\r ;]*)|)", re.IGNORECASE
)
_XML_DECLARATION = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([^\"'>]+)[\"']")
_XML_IN_UTF16 = ((b"<\0?\0x\0", "utf-16-le"), (b"\0<\0?\0x", "utf-16-be"))
_CSS_DECLARATION = re.compile(rb'@charset "([^"]+)";')


def charset_of(content: bytes | Document, label: str = "", *, html: bool = False) -> str:
    """Return the Python codec for `content`, given the `label` of the server (`""`: none).

    After a byte order mark it is a codec that takes the mark off: `utf-8-sig`, `utf-16`. With `html`, a `<meta>` counts
    anywhere.
    """
    head = first(content, _PRESCAN_BYTES)
    if head[:1] in b"\xef\xff\xfe":
        for mark, marked in _BOMS:
            if head.startswith(mark):
                return marked
    codec = codec_of(label) if label else None
    if codec is None:
        codec = _prescanned(head) or (_in_tree(content) if html else None) or _detected(first(content))
    return OWN_CODECS + codec if codec.startswith(_WITH_GAPS) and _differs(content, codec) else codec


def _differs(content: bytes | Document, codec: str) -> bool:
    """Return whether Python's single-byte `codec` decodes a byte of `content` in another way than the standard."""
    odd = differing(codec)
    stream = content.open() if isinstance(content, Document) else BytesIO(content)
    return any(len(piece.translate(None, odd)) < len(piece) for piece in read_on(stream))


@lru_cache(maxsize=1024)
def _codec_of(label: str) -> str | None:
    label = label.strip("\t\n\f\r ").lower()
    if label in _LABELS:
        return _LABELS[label]
    name = map_encoding_to_html5(label, False) if label.isascii() else None
    if name is None:
        return None
    name = _CODECS.get(name, name)
    return f"windows-{name[2:]}" if name.startswith("cp125") else name


def codec_of(label: str) -> str | None:
    """Return the Python codec for a label of the Encoding Standard; None for an unknown label."""
    return _codec_of(label) if len(label) <= _LABEL_CHARS else None


def _prescanned(head: bytes) -> str | None:
    """Return the encoding a page declares in its first bytes (13.2.3.2, "prescan a byte stream")."""
    for start, wide in _XML_IN_UTF16:
        if head.startswith(start):
            return wide
    lower = head.lower()
    if b"charset" in lower:
        css = _CSS_DECLARATION.match(head)
        if css is not None:
            return _declared(css[1].decode("latin-1"))
        # The pages of a site begin alike: up to the first declaration, most often the one that counts.
        codec = _in_metas(head[: head.find(b">", lower.index(b"charset")) + 1]) or _in_metas(head)
        if codec is not None:
            return codec
    if b"encoding" in lower:
        xml = _XML_DECLARATION.match(head)
        if xml is not None:
            return _declared(xml[1].decode("latin-1"))
    return None


@lru_cache(maxsize=256)
def _in_metas(head: bytes) -> str | None:
    """Return the encoding of the first `<meta>` in `head` that declares one."""
    return next(filter(None, map(_of_meta, _metas(head))), None)


def _metas(head: bytes) -> Iterator[Mapping[str, str | None]]:
    """Yield the attributes of the `<meta>` tags that are whole within `head`, in order."""
    position = 0
    while (match := _MARKUP.search(head, position)) is not None:
        comment, meta, tag = match.groups()
        if meta or tag:
            name_end = _NAME_END.search(head, match.end())
            attributes, position = _attributes(head, match.end() if meta or name_end is None else name_end.start())
            if head[position : position + 1] != b">":
                return
            if meta:
                yield attributes
        else:  # the dashes that begin a comment may also end it
            position = head.find(b"-->", match.start() + 2) if comment else head.find(b">", match.end())
            if position < 0:
                return


def _attributes(head: bytes, position: int) -> tuple[dict[str, str | None], int]:
    """Return the attributes from `position` on, the first of each name, and where they end: at a `>` or with `head`."""
    found: dict[str, str | None] = {}
    while match := _ATTRIBUTE.match(head, position):
        position = match.end()
        name, *values = match.groups(b"")
        if not name:
            break
        found.setdefault(name.decode("latin-1").lower(), b"".join(values).decode("latin-1"))
    return found, position


def _in_tree(content: bytes | Document) -> str | None:
    """Return the encoding that a `<meta>` behind the prescan declares, in what a parser takes for markup (13.2.3.4)."""
    begin = first(content, MAX_BYTES)
    if b"<m" not in begin and b"<M" not in begin:
        return None  # the usual page without a declaration is not copied
    lower = begin.lower()
    if b"<meta" not in lower or b"charset" not in lower:
        return None
    del lower  # before a tree is made
    for node in tree_of(begin).css("meta[charset],meta[http-equiv][content]"):
        codec = _of_meta(node.attributes)
        if codec is not None:
            return codec
    return None


def _of_meta(attributes: Mapping[str, str | None]) -> str | None:
    codec = _declared(attributes.get("charset") or "")
    if codec is not None or (attributes.get("http-equiv") or "").lower() != "content-type":
        return codec
    match = _IN_CONTENT.search(attributes.get("content") or "")
    return _declared("".join(match.groups(""))) if match else None


def _declared(label: str) -> str | None:
    """Return the codec for a label that was read as ASCII, so that the page is not UTF-16, whatever it says."""
    codec = codec_of(label)
    if codec in _WIDE:
        return "utf-8"
    return DEFAULT if codec == f"{OWN_CODECS}user-defined" else codec


def _detected(content: bytes) -> str:
    fault = None if content.isascii() else _fault_of_utf8(content)
    if fault is not None:
        begin, is_cut = fault
        if is_cut and begin > 0:
            return "utf-8"  # whole except for its end
        at = max(0, begin - _SAMPLE_BYTES // 4)  # ASCII tells nothing
        name = detect_encoding(content[at : at + _SAMPLE_BYTES], html5_compatible=False) or ""
        guess = _CODECS.get(name) or codec_of(name)
        return DEFAULT if guess is None or guess == "utf-8" or guess in _WIDE else guess
    start = content[:_SAMPLE_BYTES]
    if b"\x1b" in start and b"\x1b$" in start:  # one byte is found ten times as fast as two
        return ISO_2022_JP
    return "utf-8"


def _fault_of_utf8(content: bytes) -> tuple[int, bool] | None:
    """Return where `content` stops being UTF-8, and whether it is only cut there; None if it is all UTF-8.

    It decodes in pieces, because one character beyond the Basic Multilingual Plane makes a text take four bytes a
    character.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    for begin in range(0, len(content), _PIECE_BYTES):
        before = len(decoder.getstate()[0])
        end = begin + _PIECE_BYTES
        try:
            decoder.decode(content[begin:end], end >= len(content))
        except UnicodeDecodeError as error:
            is_cut = error.reason == "unexpected end of data" and begin - before + error.end == len(content)
            return begin - before + error.start, is_cut
    return None
