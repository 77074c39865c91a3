"""The small fixed tree of documents that the gopher and FTP servers hold.

Both servers and the judge call it. Invariant: all of it can be reached from the two URLs to which page 0 of the web
links; a name that ends in `/` is a directory.
"""

from fyke.lab.simweb.hosts import FTP_HOST, GOPHER_HOST

MODIFIED = "20200229120000"  # as in an answer to MDTM
GOPHER_TEXTS = ("about", "nets", "tides")


def gopher_menus(port: int, entry: str) -> dict[str, bytes]:
    """Return menus by selector; `entry` is the URL of the web's page 0."""

    def row(kind: str, name: str, selector: str) -> str:
        return f"{kind}{name}\t{selector}\t{GOPHER_HOST}\t{port}\r\n"

    texts = [row("0", name, f"/{name}.txt") for name in GOPHER_TEXTS[:2]]
    web = row("h", "The web", f"URL:{entry}")
    root = "iA gopher hole\tfake\t(NULL)\t0\r\n" + "".join(texts) + row("1", "More", "/more") + web
    more = row("0", GOPHER_TEXTS[2], f"/{GOPHER_TEXTS[2]}.txt") + row("1", "Up", "/")
    return {"": f"{root}.\r\n".encode(), "/": f"{root}.\r\n".encode(), "/more": f"{more}.\r\n".encode()}


def gopher_texts() -> dict[str, bytes]:
    """Return texts by selector."""
    return {f"/{name}.txt": f"Of {name}.\r\nA net on hoops.\r\n.\r\n".encode() for name in GOPHER_TEXTS}


def gopher_targets() -> list[str]:
    """Return the paths of all gopher URLs that menus lead to, with their type, root menu first."""
    return ["/1/", *(f"/0/{name}.txt" for name in GOPHER_TEXTS), "/1/more"]


def ftp_files(entry: str, port: int) -> dict[str, bytes]:
    """Return files by absolute path."""
    here = f"ftp://{FTP_HOST}:{port}"
    page = f'<!doctype html><title>Files</title><a href="notes.txt">notes</a> <a href="{entry}">web</a>\n'
    deep = f'<!doctype html><title>Old</title><a href="{here}/pub/">up</a>\n'
    return {
        "/pub/index.html": page.encode(),
        "/pub/notes.txt": b"Notes on nets.\n",
        "/pub/old/deep.html": deep.encode(),
    }


def ftp_listing(files: dict[str, bytes], folder: str) -> list[tuple[str, int | None]]:
    """Return the entries of a directory (ends in `/`): name, and size in bytes or None for a directory."""
    entries: dict[str, int | None] = {}
    for path, data in files.items():
        if path.startswith(folder):
            name, slash, _ = path.removeprefix(folder).partition("/")
            entries[name] = None if slash else len(data)
    return sorted(entries.items())


def ftp_targets() -> list[str]:
    """Return the paths of all FTP URLs that listings lead to, `/pub/` first."""
    return ["/pub/", "/pub/index.html", "/pub/notes.txt", "/pub/old/", "/pub/old/deep.html"]
