"""`fyke.Config` as a person's own program uses it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from annotated_types import Le

import fyke
from fyke.archive.schemas import SCHEMAS
from fyke.core.config import Config, load

PROGRAM = """
import fyke

config = fyke.Config(politeness={"host_delay_s": 2.0, "tries": 3}, crawl={"pages": 10})
with fyke.Crawl("http://example.org/", into="there", config=config, scope="host") as crawl:
    for page in crawl:
        print(page.url, page.title)
"""


def test_a_program_passes_mypy(tmp_path: Path) -> None:
    """One run says that of the right program it has nothing to say, and of the wrong one what is wrong."""
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(PROGRAM.replace("politeness=", "politness="))
    checked = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "right.py", "wrong.py"]
    done = subprocess.run(checked, capture_output=True, text=True, timeout=110, check=False, cwd=tmp_path)
    *said, summary = done.stdout.splitlines()
    assert 'wrong.py:4: error: Unexpected keyword argument "politness"' in done.stdout
    assert all("wrong.py:" in line for line in said) and summary.endswith("in 1 file (checked 2 source files)"), said


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        (
            {"politeness": {"host_delay": 2}},
            "fyke.Config: unknown key politeness.host_delay; known here: host_delay_s,",
        ),
        ({"politness": {}}, "fyke.Config: unknown key politness; known here: crawl,"),
        ({"crawl": {"pages": "many"}}, "fyke.Config: crawl.pages = 'many' cannot be used: "),
        ({"crawl": 3}, "fyke.Config: crawl = 3 is not a table: write [crawl], and its keys below it"),
        ({"site": "a"}, "fyke.Config: site is not a table: write [[site]], and its keys below it"),
        ({"extract": [{"table": "near", "fields": {"a": "p"}}]}, "the table near exists already"),
        (
            {"extract": [{"table": name, "fields": {"a": "p"}} for name in ("one", "two", "one")]},
            "fyke.Config: extract cannot be used: 2 tables have the name one: give each its own name",
        ),
        ({"agent": {"user_agent": "bot2"}}, "only letters, - and _"),
        *(
            ({"dns": {"private": [wrong]}}, "not a host or domain: write a name such as intranet.example.org")
            for wrong in ("", "*", ".", "http://test/", "127.0.0.0/8", "a b", "test:80", "a*.test", "me@test")
        ),
        ({"politeness": {"host_delay_s": True}}, "politeness.host_delay_s = True cannot be used: write a number"),
        ({"crawl": {"pages": False}}, "crawl.pages = False cannot be used: write a number"),
        ({"revisit": {"share": True}}, "revisit.share = True cannot be used: write a number"),
        ({"site": [{"match": "*", "delay_s": True}]}, "site.0.delay_s cannot be used: write a number"),
        ({"site": [{"match": "*", "media_bytes": {"video/*": True}}]}, "video/* cannot be used: write a number"),
        ({"site": {"match": "*", "delay_s": 1}}, "[site] must be a list of tables: write [[site]]"),
        ({"extract": {"table": "x"}}, "[extract] must be a list of tables: write [[extract]]"),
        ({"politeness": [{"tries": 1}]}, "[[politeness]] must be a single table: write [politeness]"),
    ],
)
def test_a_mistake_is_a_fyke_error(sections: dict[str, Any], words: str) -> None:
    with pytest.raises(fyke.FykeError) as raised:
        fyke.Config(**sections)
    assert words in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["TEST.example", "test.example.", ".test.example", "*.test.example", " test.example "])
def test_a_private_domain_may_be_written_as_people_write_domains(name: str) -> None:
    assert fyke.Config(dns={"private": [name, "127.0.0.9", "[::1]"]}).dns.private == [
        "test.example",
        "127.0.0.9",
        "[::1]",
    ]


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_is_read_out_of_pages_has_no_table_that_is_there(name: str) -> None:
    with pytest.raises(fyke.FykeError, match="choose another name"):
        fyke.Config(extract=[{"table": name, "fields": {"a": "p"}}])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[agent]\ncontact = "Jürgen, j@example.org"', "ASCII"),
        ("[frontier]\nhost_visits = 9223372036854775808", "host_visits"),
        (f"[frontier]\ndefault_budget_urls = 1{'0' * 400}", "default_budget_urls"),
        (f"[crawl]\npages = {'9' * 5000}", "not TOML"),
        (f"[crawl]\npages = 0x{'f' * 5000}", "a huge number"),
        (f"[crawl]\nseeds = {'[' * 5000}", "deep"),
        (f"a = {'{a=' * 5000}", "deep"),
        ('[crawl]\nrewrite = "a\\u0000b"', "NUL"),
        ('[[site]]\nmatch = "*"\ncookies = "\\u0000"', "NUL"),
        ("[revisit]\nleast_s = 1e308", "least_s"),
        (f'[crawl]\nscope = "{"x" * 100_000}"', "scope"),
        (f"[crawl]\n{'x' * 100_000} = 1", "unknown key"),
        (f"{'x' * 100_000} = 1", "unknown key"),
        (f'[[extract]]\ntable = "{"A" * 100_000}"\nfields.a = "b"', "is not a name"),
        (f'[[extract]]\ntable = "a"\nfields.{"A" * 100_000} = "b"', "is not a name"),
        (f'[[site]]\nmatch = "{"x" * 100_000}"\nuser = "a"', "site"),
    ],
)
def test_a_file_of_nonsense_has_one_short_line(tmp_path: Path, text: str, words: str) -> None:
    (path := tmp_path / "x.toml").write_text(text, encoding="utf-8")
    with pytest.raises(fyke.FykeError) as raised:
        load(path)
    said = str(raised.value)
    assert words in said and "\n" not in said and len(said) < 1000


NUMBERS = [
    (section, key, field.metadata)
    for section, settings in Config().sections
    for key, field in type(settings).model_fields.items()
    if any(isinstance(bound, Le) for bound in field.metadata)
]


@pytest.mark.parametrize(("section", "key", "bounds"), NUMBERS, ids=[f"{section}.{key}" for section, key, _ in NUMBERS])
def test_every_ceiling_that_is_written_holds(section: str, key: str, bounds: list[Any]) -> None:
    """A second one, such as that of the type, takes none away."""
    most = min(bound.le for bound in bounds if isinstance(bound, Le))
    Config(**{section: {key: most}})
    with pytest.raises(fyke.FykeError, match=f"{section}.{key}"):
        Config(**{section: {key: most + 1 + most // 10**6}})


def test_a_crawl_takes_no_password_and_no_folder_that_is_not_utf8(tmp_path: Path) -> None:
    with pytest.raises(fyke.FykeError, match=r"^http://127.0.0.1/ contains .* leave them out"):
        fyke.Crawl("http://me:secret@127.0.0.1/", into=tmp_path / "there")
    with pytest.raises(fyke.FykeError, match="not UTF-8"):
        fyke.Crawl("http://127.0.0.1/", into=tmp_path / "a\udcff")
    assert not [*tmp_path.iterdir()]


def test_there_are_no_more_settings_than_there_were() -> None:
    assert sum(len(type(section).model_fields) for _, section in Config().sections) <= 61
