"""Text comes back as it was written, whoever declares its encoding, and whether or not."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core import pages
from fyke.core.markup import pieces
from fyke.core.pages import Page
from fyke.core.visits import Exchange
from fyke.harvest.charset import _codec_of, charset_of, codec_of
from fyke.harvest.decoders import install

install()

RUSSIAN = "Программист должен писать программы так, чтобы люди могли их прочитать и понять без труда. "
JAPANESE = "プログラムは人間が読むために書かれるべきであり、たまたま機械がそれを実行するだけである。"
CHINESE = "程序必须是为了给人看而写，给机器去执行只是附带任务。这个句子说明了编程的本质。"
KOREAN = "프로그램은 사람이 읽을 수 있도록 작성되어야 하며, 우연히 기계가 실행할 뿐이다. "
FRENCH = "Déjà vu à l’œuvre : où êtes-vous, garçon naïf ? Voilà « €uro ». "
GREEK = "Τα προγράμματα πρέπει να γράφονται για να τα διαβάζουν οι άνθρωποι. "

# label on the page, Python's encoding for it, a text it can write
DECLARED = [
    ("utf-8", "utf-8", RUSSIAN + JAPANESE),
    ("UTF8", "utf-8", KOREAN),
    ("windows-1251", "cp1251", RUSSIAN),
    ("koi8-r", "koi8-r", RUSSIAN),
    ("iso-8859-5", "iso8859-5", RUSSIAN),
    ("ibm866", "cp866", RUSSIAN),
    ("x-mac-cyrillic", "mac_cyrillic", RUSSIAN),
    ("iso-8859-1", "cp1252", FRENCH),
    ("latin1", "cp1252", FRENCH),
    ("us-ascii", "cp1252", FRENCH),
    ("windows-1253", "cp1253", GREEK),
    ("iso-8859-7", "iso8859-7", GREEK),
    ("shift_jis", "cp932", JAPANESE + "①㈱～"),
    ("x-sjis", "cp932", JAPANESE),
    ("euc-jp", "euc_jp", JAPANESE),
    ("iso-2022-jp", "iso2022_jp", JAPANESE),
    ("gb2312", "gbk", CHINESE + "镕"),
    ("gbk", "gb18030", CHINESE + "€😀"),
    ("gb18030", "gb18030", CHINESE + "😀"),
    ("big5", "big5", "程式必須是為了給人看而寫"),
    ("euc-kr", "cp949", KOREAN + "똠방각하"),
    ("ks_c_5601-1987", "cp949", KOREAN),
    ("iso-8859-8-i", "iso8859-8", "שלום עולם"),
    ("tis-620", "cp874", "สวัสดีชาวโลก"),
    ("macintosh", "mac_roman", "Déjà vu"),
]
LONG = [
    *DECLARED,
    ("iso-2022-jp", "iso2022_jp", "下主" * 60),
    ("utf-16", "utf-16-le", RUSSIAN + "㰀"),
    ("utf-16be", "utf-16-be", RUSSIAN + "㰀"),
]
WRITTEN = [
    '<meta charset="{}">',
    "<META CHARSET={} >",
    "<!-- <meta charset=koi8-u> --><title>x</title><meta name=a content='charset=utf-7'><meta charset='{}'/>",
    '<meta http-equiv="Content-Type" content="text/html; charset={}">',
    "<meta content='text/html;charset = \"{}\"' http-equiv=content-type>",
    '<?xml version="1.0" encoding="{}"?>',
]


@pytest.mark.parametrize(("label", "encoding", "text"), DECLARED)
def test_the_server_says(label: str, encoding: str, text: str) -> None:
    data = text.encode(encoding)
    assert data.decode(charset_of(data, label)) == text
    assert data.decode(charset_of(b"<meta charset=utf-8>" + data, f" {label.upper()} ")) == text


@pytest.mark.parametrize("meta", WRITTEN)
@pytest.mark.parametrize(("label", "encoding", "text"), DECLARED)
def test_the_page_says(label: str, encoding: str, text: str, meta: str) -> None:
    data = meta.format(label).encode() + text.encode(encoding)
    assert data.decode(charset_of(data)).endswith(text)
    assert data.decode(charset_of(data, "no-such-label")).endswith(text)


_PADDING = ["", "<!--{}-->", "<script>{}</script>", "<p title='{}'>", "<p>{}"]


@pytest.mark.parametrize("padding", _PADDING)
@pytest.mark.parametrize("place", ["<head>{}", "</head>{}", "<body>{}", "<p>{}", "<table><tr>{}"])
@given(st.sampled_from(DECLARED), st.sampled_from(WRITTEN[:-1]), st.integers(0, 20_000))
def test_the_page_says_it_late(
    padding: str, place: str, declared: tuple[str, str, str], meta: str, length: int
) -> None:
    label, encoding, text = declared
    before = padding.format(" " * length) + place.format(meta.format(label))
    data = before.encode() + text.encode(encoding)
    assert data.decode(charset_of(data, html=True)) == before + text


@pytest.mark.parametrize("around", ["<!--{}-->", "<script>{}</script>", "<textarea>{}</textarea>", "<title>{}</title>"])
@pytest.mark.parametrize("filling", ["", "x" * 2000])
def test_what_is_no_tag_to_a_parser_says_nothing(around: str, filling: str) -> None:
    declared = "<meta charset=koi8-r>"
    late = f"<p>{'x' * 1024}{around.format(filling + declared)}{RUSSIAN}".encode()
    assert charset_of(late, html=True) == "utf-8"
    assert charset_of(f"<p>{'x' * 1024}{declared}{RUSSIAN}".encode()) == "utf-8"
    assert charset_of(f"<p>{'x' * 1024}{declared}{RUSSIAN}".encode(), html=True) == "koi8-r"


@given(st.text("x/ \t\n", max_size=12), st.text("x=/<> \t\n", max_size=40), st.sampled_from(["p", "/p", "metas", "a"]))
def test_the_prescan_reads_the_attributes_of_other_tags(before: str, quoted: str, tag: str) -> None:
    hidden = f'<{tag} {before} a="{quoted}<meta charset=koi8-r>{quoted}"'
    assert charset_of(f"{hidden}><p>{RUSSIAN}".encode()) == "utf-8"
    assert charset_of(f"{hidden}><meta charset=koi8-r>{RUSSIAN}".encode()) == "koi8-r"


@pytest.mark.parametrize(
    ("mark", "encoding"), [(b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")]
)
def test_a_byte_order_mark_wins_and_is_gone(mark: bytes, encoding: str) -> None:
    data = mark + f"<meta charset=koi8-r>{RUSSIAN}".encode(encoding)
    assert data.decode(charset_of(data, "koi8-r")) == f"<meta charset=koi8-r>{RUSSIAN}"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", RUSSIAN),
        ("utf-8", JAPANESE),
        ("cp1251", RUSSIAN * 5),
        ("koi8-r", RUSSIAN * 5),
        ("cp932", JAPANESE * 3),
        ("euc_jp", JAPANESE * 3),
        ("gbk", CHINESE * 3),
        ("cp949", KOREAN * 3),
        ("iso2022_jp", JAPANESE),
        ("ascii", "Plain text."),
    ],
)
def test_nobody_says(encoding: str, text: str) -> None:
    data = b"<html><p>" + text.encode(encoding)
    assert data.decode(charset_of(data)) == "<html><p>" + text


def test_cut_in_the_middle_of_a_character() -> None:
    assert charset_of(RUSSIAN.encode()[:-2]) == "utf-8"


def test_the_guess_is_made_where_the_text_is() -> None:
    data = b"<script>" + b"var a = 1;" * 2000 + b"</script>" + (RUSSIAN * 3).encode("cp1251")
    assert charset_of(data) == "windows-1251"


def test_a_page_that_declares_utf16_in_ascii_lies() -> None:
    data = f"<meta charset=utf-16>{RUSSIAN}".encode()
    assert charset_of(data) == "utf-8"
    assert charset_of(b"<meta charset=utf-16be>") == "utf-8"
    assert charset_of(b"<meta charset=x-user-defined>") == "windows-1252"
    assert "abc".encode("utf-16-le").decode(charset_of("abc".encode("utf-16-le"), "utf-16")) == "abc"


def test_windows_1252_has_no_holes() -> None:
    every = bytes(range(256))
    text = every.decode(charset_of(every, "iso-8859-1"), "replace")
    assert "\ufffd" not in text
    assert [text[i] for i in (0x80, 0x81, 0x8D, 0x9D, 0xE9)] == ["€", "\x81", "\x8d", "\x9d", "é"]
    assert charset_of(b"caf\xe9", "iso-8859-1") == "windows-1252"


def test_holes_of_others_are_controls_below_a0_only() -> None:
    text = bytes(range(256)).decode(charset_of(bytes(range(256)), "windows-1253"), "replace")
    assert (text[0x81], text[0xD2], text[0xAA]) == ("\x81", "\ufffd", "\ufffd")


def test_encodings_that_are_not_to_be_believed() -> None:
    assert b"anything".decode(charset_of(b"anything", "iso-2022-kr"), "replace") == "\ufffd"
    assert b"".decode(charset_of(b"", "hz-gb-2312"), "replace") == ""
    assert b"a\x80\xff".decode(charset_of(b"a", "x-user-defined")) == "a\uf780\uf7ff"
    with pytest.raises(UnicodeError):
        "a".encode("x-whatwg-replacement")


@pytest.mark.parametrize("label", ["utf-7", "", "nonsense", "é", "\x00", "base64", "rot13", "hex", "punycode"])
def test_no_label_of_the_standard(label: str) -> None:
    assert codec_of(label) is None


_LABELS = [label for label, _, _ in DECLARED] + ["", "x", "replacement", "x-user-defined", "utf-16", "utf-16be"]
_PIECES = [
    b"<meta ",
    b"charset=",
    b"koi8-r",
    b'"',
    b"'",
    b">",
    b"<!--",
    b"\x1b$B",
    b"<?xml encoding='",
    b"\xff\xfe",
    b"\x81",
]


@given(
    st.binary() | st.lists(st.sampled_from(_PIECES)).map(b"".join), st.sampled_from(_LABELS) | st.text(), st.booleans()
)
def test_any_bytes_are_some_text(data: bytes, label: str, html: bool) -> None:
    codec = charset_of(data, label, html=html)
    data.decode(codec, "replace")
    bytes(range(256)).decode(codec, "replace")


@pytest.mark.parametrize(("label", "encoding", "text"), LONG)
def test_a_page_read_in_pieces_says_the_same(
    label: str, encoding: str, text: str, answer: Callable[..., Exchange], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a byte `<` may be half a character, or what follows depends on what was before, it is read in one."""
    monkeypatch.setattr(pages, "pieces", partial(pieces, most_bytes=300))
    whole = f"<p>{text}<b>{text}" * 30
    content = whole.encode(encoding)
    page = Page(answer(), "text/html", content, charset=charset_of(content, label))
    assert b"".join(page.html()).decode() == whole


def test_a_long_label_is_none_and_is_not_remembered() -> None:
    before = _codec_of.cache_info().currsize
    assert all(codec_of(f"{number}{'x' * 500}") is None for number in range(20))
    assert _codec_of.cache_info().currsize == before
