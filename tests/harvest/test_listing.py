"""Gopher menus and FTP directories."""

import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fyke.core.pages import Page
from fyke.core.resolve import MOST_WRITTEN_BYTES, LinkResolver
from fyke.core.urls import MAX_URL_BYTES, canonical
from fyke.harvest import Parser
from fyke.harvest.links import MOST_LINKS

Read = Callable[..., Page]

FOLDER = "ftp://ftp.example.org/pub/"


@pytest.mark.parametrize(
    ("line", "link"),
    [
        ("1Sub\t/sub\texample.org\t70", "gopher://example.org:70/1/sub"),
        ("0Text\tfile.txt\texample.org\t7070", "gopher://example.org:7070/0file.txt"),
        ("1Root\t\texample.org\t70\t+", "gopher://example.org:70/1"),
        ("IA picture\t/a b.png\texample.org\t70", "gopher://example.org:70/I/a%20b.png"),
        ("0Query\t/a?b#c%d\texample.org\t70", "gopher://example.org:70/0/a%3Fb%23c%25d"),
        ("hWeb\tURL:http://example.com/\texample.org\t70", "http://example.com/"),
        ("hWeb\t/URL:https://example.com/?a\texample.org\t70", "https://example.com/?a"),
        ("hPage\t/page.html\texample.org\t70", "gopher://example.org:70/h/page.html"),
        ("iwords\tfake\t(NULL)\t0", ""),
        ("3error\t\terror.host\t1", ""),
        ("7Search\t/s\texample.org\t70", ""),
        ("8Telnet\t\texample.org\t23", ""),
        ("1No port\t/\texample.org", ""),
        ("1Bad port\t/\texample.org\tx", ""),
        (".", ""),
        ("", ""),
    ],
)
def test_a_menu_line(read: Read, line: str, link: str) -> None:
    page = read(f"{line}\r\n.\r\n", "gopher://example.org/1/menu")
    assert page.links.pages == ([link] if link else [])


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("drwxr-xr-x   2 ftp  ftp      4096 Jan  1 12:00 pub", "pub/"),
        ("-rw-r--r--   1 ftp  ftp  12345678 Jan  1  2020 a file.txt", "a%20file.txt"),
        ("-rw-r--r--   1 1000 1000     10 Feb 29 2020  leading", "%20leading"),
        ("-rw-r--r--+  1 ftp  ftp        10 2020-02-29 10:00 iso", "iso"),
        ("-rw-r--r--   1 ftp  domain users 10 29 Feb 10:00 x", "x"),
        ("lrwxrwxrwx   1 ftp  ftp        10 Jan  1 12:00 link -> target/", "link"),
        ("-rw-r--r--   1 ftp ftp 1 Jan  1 12:00 50%#?;é", "50%25%23%3F;%C3%A9"),
        ("-rw-r--r--   1 ftp ftp 1 Jan  1 12:00 a:b", "a:b"),
        ("drwxr-xr-x   2 ftp ftp 1 Jan  1 12:00 ..", ""),
        ("total 12", ""),
        ("01-31-20  10:00AM       <DIR>          Folder", "Folder/"),
        ("01-31-2020  22:00                 1234 A File.txt", "A%20File.txt"),
        ("type=dir;modify=20200101000000; sub", "sub/"),
        ("Type=file;Size=12; a;b c", "a;b%20c"),
        ("type=cdir;perm=el; .", ""),
        ("type=pdir; ..", ""),
        ("nonsense", ""),
        ("-rw-r--r--   1 ftp ftp 1 Jan  1 12:00 " + "x" * 5000, ""),
    ],
)
def test_a_line_of_a_directory(read: Read, line: str, name: str) -> None:
    page = read(f"{line}\r\n", FOLDER)
    assert page.links.pages == ([FOLDER + name] if name else [])


names = st.text(st.characters(exclude_characters="\n\r/\x00", codec="utf-8"), min_size=1, max_size=30)


@given(names.filter(lambda name: name not in (".", "..") and not name[0].isspace()))
def test_any_name_leads_to_a_file_of_that_folder(read: Read, name: str) -> None:
    page = read(f"-rw-r--r-- 1 ftp ftp 1 Jan  1 12:00 {name}", FOLDER)
    (link,) = page.links.pages
    url = canonical(link)
    assert url is not None and url.startswith(FOLDER) and "/" not in url.removeprefix(FOLDER)


@given(st.binary())
def test_never_raises(answer: Callable[..., object], data: bytes) -> None:
    for url in (FOLDER, "gopher://h/1/"):
        Parser().parse(answer(url), data)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "url"),
    [("1menu\t/{n}\thost\t70", "gopher://example.org/1/"), ("-rw-r--r-- 1 a b 10 Jan  1 2020 file{n}", FOLDER)],
)
def test_a_long_list_takes_little_memory_beside_itself(read: Read, line: str, url: str) -> None:
    """As many links as are taken of any page, and no line of the rest is kept."""
    content = "\r\n".join(line.format(n=n) for n in range(2 * MOST_LINKS))
    tracemalloc.start()
    try:
        page = read(content, url)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(page.links.pages) == MOST_LINKS
    assert peak < 200 * MOST_LINKS + 4 * len(content)


def test_a_long_folder_is_not_written_out_for_each_of_its_files(read: Read) -> None:
    """Behind what is resolved of a page no link is made; all that is resolved is still there."""
    folder = f"ftp://ftp.example.org/{'d' * (MAX_URL_BYTES - 100)}/"
    page = read("a=; x\r\n" * MOST_LINKS, folder)
    assert sum(map(len, page.links.pages)) <= MOST_WRITTEN_BYTES + MAX_URL_BYTES
    taken, every = (
        LinkResolver().resolve([(folder, [f"{folder}x"] * count)]).urls for count in (len(page.links.pages), MOST_LINKS)
    )
    assert taken == every and page.cut
