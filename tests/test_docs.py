"""What the documentation says to type works: every block of the how-tos is run, every option named anywhere exists."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from crawl.guarded import proxy
from crawl.runs import crawl, settings
from crawl.small_site import SmallSite, small_site
from fyke.archive.schemas import SCHEMAS
from fyke.cli.app import app
from fyke.core.outcomes import Outcome

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
HOWTO = (ROOT / "docs" / "howto.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", HOWTO, re.MULTILINE | re.DOTALL))
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ALONE = {
    "Change a selector, and ask the archive again": "Get fields of pages as a table",
    "Get the fields into a database": "Get fields of pages as a table",
    "Stop it, and go on": "Stop in time",
}


@pytest.fixture(scope="module")
def site() -> Iterator[SmallSite]:
    with small_site(pages=12) as running:
        running.answers["/"] = 200, {"Content-Type": "text/html"}, (
            b"<title>A page</title>" + b"".join(b"<a href=/p%d>%d</a>" % (n, n) for n in range(1, 6))
            + b"<a href=/docs/>d</a><a href=/private/x>x</a><a href=/gone>g</a><img src=/i.png>"
        )  # fmt: skip
        page = "text/html", b"<title>Docs</title><p>Words of a page, so that there is something to read here.</p>"
        running.answers["/docs/"] = 200, {"Content-Type": page[0]}, page[1]
        running.answers["/robots.txt"] = 200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /private/\n"
        places = "".join(f"<url><loc>{running.url}p{n}</loc></url>" for n in (1, 2))
        running.answers["/sitemap.xml"] = 200, {"Content-Type": "text/xml"}, f"<urlset>{places}</urlset>".encode()
        yield running


@pytest.fixture(scope="module")
def crawled(site: SmallSite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crawl")
    assert crawl(folder / "there", settings(folder), site.url).status == 0
    return folder / "there"


@pytest.mark.parametrize("title", SECTIONS)
def test_a_howto_works_as_it_is_printed(title: str, site: SmallSite, crawled: Path, tmp_path: Path) -> None:
    """With a site on this machine for example.org, and without delays."""
    shutil.copytree(crawled, tmp_path / "there")
    with proxy("http") as between:
        for kind, text in [*_BLOCK.findall(SECTIONS.get(ALONE.get(title, ""), "")), *_BLOCK.findall(SECTIONS[title])]:
            text = text.replace("https://example.org/", site.url).replace("127.0.0.1:3128", f"127.0.0.1:{between.port}")
            text = text.replace('"*.example.org"', '"127.0.0.1"').replace("example.org\t", "127.0.0.1\t")
            text = re.sub(r"(block there) example.org", r"\1 127.0.0.1", text)
            if kind == "toml" and text.startswith("# "):
                name, _, settings_text = text.removeprefix("# ").partition("\n")
                (tmp_path / name).write_text(settings_text)
            elif kind == "sh":
                text = re.sub(r"fyke crawl (?!.*--delay)", "fyke crawl --delay 0 --private 127.0.0.1 ", text)
                _run(["bash", "-e", "-c", text], tmp_path)
            elif kind == "python":
                (tmp_path / "program.py").write_text(text)
                _run([sys.executable, "program.py"], tmp_path)


def _run(command: list[str], folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=100, check=False, cwd=folder, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_option_exists(path: Path) -> None:
    """Those after a command are its own; those of a table's right column are of some command."""
    from fyke import cli  # noqa: F401 - it adds the commands

    known = {name: {option for one in command.params for option in one.opts} for name, command in _commands().items()}
    for name, rest in re.findall(r"\bfyke (\w+)\b([^`\n|]*)", path.read_text()):
        if name in known:
            assert set(re.findall(r"(?<!\S)--[a-z][a-z-]*", rest)) <= known[name] | {"--help"}, (name, rest)
    every = set().union(*known.values())
    for line in path.read_text().splitlines():
        cells = line.split("|")
        if line.startswith("|") and len(cells) == 4 and path.name == "migrating.md":
            assert set(re.findall(r"(?<!\S)--[a-z][a-z-]*", cells[2].replace("`", " "))) <= every, line


def _commands() -> dict[str, typer.core.TyperCommand]:
    return typer.main.get_command(app).commands  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_setting_exists(path: Path) -> None:
    """Each block of settings is read as a crawl would read it."""
    import tomllib

    from fyke.core.config import build

    for kind, text in _BLOCK.findall(path.read_text()):
        if kind == "toml":
            build(tomllib.loads(text), str(path))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_within_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
        made = path.parent.name == "docs" and f": {target}" in (ROOT / "mkdocs.yml").read_text()  # of the program
        assert made or (path.parent / target).exists(), target


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_files_that_are_named_exist(name: str) -> None:
    """Whole paths, and paths of programs below the folder of the package."""
    named = re.findall(
        r"`((?:src|tests|docs|benches|examples|deploy)/[\w./-]+|[\w/-]+\.(?:py|c))`", (ROOT / name).read_text()
    )
    assert not [path for path in named if not (ROOT / path).exists() and not (ROOT / "src" / "fyke" / path).exists()]


TASKS = re.findall(r"^\| (\d+) \|([^|]*)\|([^|]*)\|(.*)\|$", (ROOT / "docs" / "tasks.md").read_text(), re.MULTILINE)


def test_the_fifty_tasks(site: SmallSite, crawled: Path, tmp_path: Path) -> None:
    """Each is typed as the how-tos have it, which are run; or is run here; or says that it is missing."""
    assert [int(cells[0]) for cells in TASKS] == [*range(1, 51)]
    headings = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in SECTIONS}
    new: list[str] = []
    for _, task, _, here in TASKS:
        typed = [one.replace("\\|", "|") for one in re.findall(r"`(fyke [^`]*)`", here)]
        linked = re.findall(r"\]\(howto\.md#([^)]*)\)", here)
        assert {*linked} <= headings, (task, linked)
        assert typed or linked or here.strip().startswith(("**missing**", "always")), task
        new += [one for one in typed if one not in HOWTO and not one.startswith("fyke serve")]
    assert len(new) < 10  # the others are run with the how-tos
    shutil.copytree(crawled, tmp_path / "there")
    text = "\n".join(new).replace("https://example.org/", site.url)
    text = re.sub(r"fyke crawl (?!.*--delay)", "fyke crawl --delay 0 --private 127.0.0.1 ", text)
    _run(["bash", "-e", "-c", text], tmp_path)


def test_the_site_is_built_of_itself(tmp_path: Path) -> None:
    """Without a warning, and nothing in it is loaded from elsewhere; every setting and command has its line."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    from fyke.core.config import Config

    for page in tmp_path.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=\"([^\"]*)", page.read_text())
        assert loaded and not [address for address in loaded if "//" in address], (page, loaded)
    settings_page = (tmp_path / "reference" / "settings.html").read_text()
    keys = [key for _, section in Config().sections for key in type(section).model_fields]
    assert [key for key in keys if f"<code>{key}</code>" not in settings_page] == []
    commands_page = (tmp_path / "reference" / "commands.html").read_text()
    assert [name for name in _commands() if f">fyke {name}</h2>" not in commands_page] == []
    assert ">fyke.Crawl</h2>" in (tmp_path / "reference" / "python.html").read_text()
    tables_page = (tmp_path / "reference" / "tables.html").read_text()
    names = [*Outcome, *(field.name for schema in SCHEMAS.values() for field in schema)]
    assert [name for name in names if f"<code>{name}</code>" not in tables_page] == []
