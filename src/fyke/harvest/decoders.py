"""The decoders of the Encoding Standard where Python's differ: codecs `x-whatwg-…`, which only decode.

Named by `fyke.harvest.charset`. Three kinds:

- encodings of one byte, as tables: Python leaves bytes undefined, or gives another character;
- encodings of more bytes, as a decoder of Python's, another for what it lacks, and some characters replaced: of
  JIS X 0208, NEC's and IBM's rows are in Python's Shift_JIS alone;
- `replacement`, which shows nothing of the content.

Differs from the standard: malformed bytes may give another number of U+FFFD; of Big5, two characters are full-width;
U+FF5E of JIS X 0212 is `~`.
"""

import codecs
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING

from fyke.core.pages import OWN_CODECS

if TYPE_CHECKING:
    from typing_extensions import Buffer  # `collections.abc` has it from Python 3.12 on

MOST_FAULTS = 10_000  # of Python's decoder in a piece, for which another is asked: with more it is no text
_OTHER_SIGNS = {"windows-1255": {0xCA: "\u05ba"}, "koi8-u": {0xAE: "ў", 0xBE: "Ў"}}
_JIS_WIDE = dict(zip("〜‖−¢£¬", "～∥－￠￡￢", strict=True))
_BIG5_SIGNS = dict(zip("•､‾∼♁☉¥¢£", "‧﹑¯～⊕⊙￥￠￡", strict=True))
_HKSCS_2008 = (  # from 87 7A on
    "㡵𡵓𣚞𦀡㻬𥣞㫵竼龗𤅡𨤍𣇪𠪊𣉞䌊蒄龖鐯䤰蘓墖靊鈘秐稲晠権袝瑌篅枂稬剏遆㓦珄𥶹瓆鿇垳䤯呌䄱𣚎堘穲𧭥讏䚮𦺈䆁𥶙箮𢒼鿈𢓁𢓉𢓌鿉蔄𣖻䂴鿊䓡𪷿拁灮鿋"
)
_BIG5_LACKS = (  # two bytes and their character
    "8E69箸 8E6F簆 8E7E糎 8EAB緒 8EB4縝 8ECD者 8ED0耨 8F57菁 8F69蒨 8F6E萏 8FCB覦 8FCC覩 8FFE起 906D都 907A銹 90DC靜 "
    "90F1響 91BF鼖 9244蔃 92AF兙 92B0兛 92B1兝 92B2兞 92C8鍮 92D1瑹 9447浧 94CA禛 95D9邗 9644靝 96ED瀞 96FC嬨 9B76爁 "
    "9B78矗 9B7B纇 9BC6駖 9BDE釔 9BEC惞 9BF6澶 9C42輶 9C53侻 9C62營 9C68鄄 9C6B鷰 9C77菏 9CBC尐 9CBD秣 9CD0婧 9D57輋 "
    "9D5A筑 9DC4拐 9EA9恢 9EEF痹 9EFD汊 9F60鬮 9F66鼗 9FCB僭 9FD8弌 A063蠏 A077拎 A0D5瑨 A0DF煢 A0E4牐 C6CF廴 C6D3无 "
    "C6D5癶 C6D7隶 C6DE〃 C6DF仝 FA5F倩 FA66偽 FABD包 FAC5卄 FAD5卿 FB48嘅 FBB8婷 FBF3幵 FBF9廐 FC4F彘 FC6C悤 FCB9撐 "
    "FCE2晴 FCF1杞 FDB7沜 FDB8渝 FDBB港 FDF1煮 FE52猪 FE6F瑜 FEAA瓩 FEDD砉"
)
_GB18030_SIGNS = dict(
    zip(
        "\ue5e5\ue78d\ue78e\ue78f\ue790\ue791\ue792\ue793\ue794\ue795\ue796\ue7c7\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854"
        "\ue864",
        "\u3000\ufe10\ufe12\ufe11\ufe13\ufe14\ufe15\ufe16\ufe17\ufe18\ufe19\u1e3f\u9fb4\u9fb5\u9fb6\u9fb7\u9fb8\u9fb9\u9fba"
        "\u9fbb",
        strict=True,
    )
)


_own = threading.local()  # `faults_left`: how often this thread's decoder may still ask for what Python lacks


class _TooManyFaults(Exception):
    pass


@dataclass(frozen=True)
class _Wide:
    """An encoding of several bytes: Python's `codec`, the characters of bytes that it `lacks`, and those to replace."""

    name: str
    codec: str
    lacks: Callable[[], dict[bytes, str]]
    signs: dict[str, str]

    @cached_property
    def handler(self) -> Callable[[UnicodeError], tuple[str, int]]:
        """Handles faults of Python's codec: returns the character that it lacks, and where to go on."""
        lacking = self.lacks()

        def at_fault(error: UnicodeError) -> tuple[str, int]:
            assert isinstance(error, UnicodeDecodeError)
            _own.faults_left -= 1
            if not _own.faults_left:
                raise _TooManyFaults
            start = error.start
            for end in (start + 2, start + 1):
                sign = lacking.get(error.object[start:end])
                if sign is not None:
                    return sign, min(end, len(error.object))
            return "\ufffd", error.end

        return at_fault

    def pieces(self, errors: str = "strict") -> "_WideDecoder":
        """Return a decoder of pieces."""
        return _WideDecoder(self, errors)

    def decode(self, data: "Buffer", errors: str = "strict", /) -> tuple[str, int]:
        return self.pieces(errors).decode(data, final=True), len(bytes(data))


class _WideDecoder(codecs.IncrementalDecoder):
    """Decodes an encoding of several bytes in pieces."""

    def __init__(self, wide: _Wide, errors: str = "strict") -> None:
        super().__init__(errors)
        self._wide = wide
        self._python = codecs.getincrementaldecoder(wide.codec)(errors)

    def decode(self, data: "Buffer", final: bool = False) -> str:
        before = self._python.getstate()
        text = self._python.decode(data, final)
        if self.errors == "replace" and "\ufffd" in text:
            text = self._with_lacking(data, before, final=final) or text
        for old, new in self._wide.signs.items():
            text = text.replace(old, new)
        return text

    def _with_lacking(self, data: "Buffer", before: tuple[bytes, int], *, final: bool) -> str:
        """Return the text with what Python's codec lacks; empty if it has too many faults."""
        after = self._python.getstate()
        self._python.setstate(before)
        self._python.errors = f"{OWN_CODECS}{self._wide.name}"
        _own.faults_left = MOST_FAULTS
        try:
            return self._python.decode(data, final)
        except _TooManyFaults:
            self._python.setstate(after)
            return ""
        finally:
            self._python.errors = self.errors

    def reset(self) -> None:
        self._python.reset()


def _jis(high: int) -> dict[bytes, str]:
    """Return the two bytes of each character of JIS X 0208 that Python lacks, each with the bit `high`."""
    found = {}
    for place in range(94 * 94):
        pair = bytes([place // 94 + 0xA1, place % 94 + 0xA1])
        lead, trail = place // 188, place % 188
        shifted = bytes([lead + (0x81 if lead < 0x1F else 0xC1), trail + (0x40 if trail < 0x3F else 0x41)])
        sign = shifted.decode("cp932", "replace")
        if len(sign) == 1 and sign != "\ufffd" and pair.decode("euc_jp", "replace") != sign:
            found[bytes([byte & (0x7F | high) for byte in pair])] = sign
    return found


def _at_fault(wide: _Wide, error: UnicodeError) -> tuple[str, int]:
    return wide.handler(error)


def _big5() -> dict[bytes, str]:
    controls = [*range(0x2400, 0x2420), 0x2421, ord("€")]
    found = {bytes([0xA3, 0xC0 + at]): chr(number) for at, number in enumerate(controls)}
    trails = [*range(0x7A, 0x7F), *range(0xA1, 0xE0)]
    found |= {bytes([0x87, trail]): sign for trail, sign in zip(trails, _HKSCS_2008, strict=True)}
    return found | {bytes.fromhex(one[:4]): one[4:] for one in _BIG5_LACKS.split()}


_WIDE = {
    wide.name: wide
    for wide in (
        _Wide("euc-jp", "euc_jp", lambda: _jis(0x80), _JIS_WIDE),
        _Wide("iso-2022-jp", "iso2022_jp_ext", lambda: _jis(0), _JIS_WIDE),
        _Wide("gb18030", "gb18030", lambda: {b"\x80": "€"}, _GB18030_SIGNS),
        _Wide("big5", "big5hkscs", _big5, _BIG5_SIGNS),
    )
}


@lru_cache(maxsize=1)
def install() -> None:
    """Register the codecs, once in a process."""
    for wide in _WIDE.values():
        codecs.register_error(f"{OWN_CODECS}{wide.name}", partial(_at_fault, wide))
    codecs.register(_find)


def _find(name: str) -> codecs.CodecInfo | None:
    prefix = OWN_CODECS.replace("-", "_")
    name = name.replace("-", "_")
    if not name.startswith(prefix):
        return None
    short = name.removeprefix(prefix).replace("_", "-")
    if short == "replacement":
        return codecs.CodecInfo(_refuse, _replacement, name=f"{OWN_CODECS}{short}")
    if (wide := _WIDE.get(short)) is not None:
        return codecs.CodecInfo(_refuse, wide.decode, name=f"{OWN_CODECS}{short}", incrementaldecoder=wide.pieces)
    table = single_byte_table(short)

    def decode(data: "Buffer", errors: str = "strict", /) -> tuple[str, int]:
        return codecs.charmap_decode(bytes(data), errors, table)

    return codecs.CodecInfo(_refuse, decode, name=f"{OWN_CODECS}{short}")


def single_byte_table(codec: str) -> str:
    """Return the 256 characters of a single-byte encoding, U+FFFE for a byte without one."""
    short = codec.removeprefix(OWN_CODECS)
    lower = "".join(map(chr, range(0x80)))
    if short == "user-defined":
        return lower + "".join(map(chr, range(0xF780, 0xF800)))
    upper = list(bytes(range(0x80, 0x100)).decode(short, "replace").replace("\ufffd", "\ufffe"))
    upper[:0x20] = [chr(0x80 + at) if sign == "\ufffe" else sign for at, sign in enumerate(upper[:0x20])]
    for byte, sign in _OTHER_SIGNS.get(short, {}).items():
        upper[byte - 0x80] = sign
    return lower + "".join(upper)


@lru_cache(maxsize=32)
def differing(codec: str) -> bytes:
    """Return the bytes that Python's single-byte `codec` decodes in another way than the standard."""
    table = single_byte_table(codec)
    every = bytes(range(0x100)).decode(codec, "replace").replace("\ufffd", "\ufffe")
    return bytes(byte for byte in range(0x100) if every[byte] != table[byte])


def _replacement(data: "Buffer", errors: str = "strict", /) -> tuple[str, int]:
    size = len(bytes(data))
    return ("\ufffd" if size else ""), size


def _refuse(text: str, errors: str = "strict", /) -> tuple[bytes, int]:
    raise UnicodeError("this codec only decodes")
