"""The manual is made of the commands, has all of them, and is one that man(1) reads."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fyke.cli.manual import SHELLS, described, man_page


def test_every_command_and_option_is_in_it() -> None:
    page = man_page(described()).replace("\\-", "-")
    help_text = subprocess.run(
        [sys.executable, "-m", "fyke", "--help"], capture_output=True, text=True, check=True
    ).stdout
    names = re.findall(r"^  ([a-z]+)  ", help_text.partition("Commands:")[2], re.MULTILINE)
    assert names == [one.name for one in described()] and len(names) > 15
    assert "..." not in help_text.partition("Commands:")[2]  # no first sentence is cut
    for one in described():
        assert f".SS {one.usage}" in page
        assert all(f".B {written}" in page for written, _ in one.options)
    crawl = next(one for one in described() if one.name == "crawl")
    assert {"--pages", "--metrics", "--again"} <= {written.split()[0] for written, _ in crawl.options}


def test_man_reads_it(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "fyke.cli.manual", str(tmp_path)], capture_output=True, check=False)
    assert done.returncode == 0 and not done.stderr
    assert all((tmp_path / name).read_text().strip() for name in SHELLS.values())
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("no groff here")
    command = [groff, "-man", "-Tutf8", "-ww", "-P-cbou", str(tmp_path / "fyke.1")]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    assert shown.returncode == 0 and not shown.stderr, shown.stderr
    assert 'fields.price = { select = "json:Product.offers.price", type = "number" }' in shown.stdout
