"""Servers of archives made to order: in the test's process, or as a person starts one."""

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from fyke.serve.app import application
from fyke.serve.security import Token
from fyke.serve.shelf import Shelf
from loaded import COMMAND, Loaded

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TOKEN = "a-word-for-tests"

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")


@contextmanager
def client(*folders: Path) -> Iterator[TestClient]:
    """Asks the application of `folders`, without a network."""
    served = application(Shelf(folders), Token(TOKEN))
    with TestClient(served, "http://localhost", follow_redirects=False) as asking:
        yield asking


@contextmanager
def served(*folders: Path) -> Iterator[str]:
    """`fyke serve` of `folders` in a process of its own: the address, with its last slash."""
    command = [*COMMAND, "serve", *map(str, folders), "--port", "0", "--token", TOKEN, "--json"]
    process = Loaded(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield json.loads(line)["url"]
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=15)
        assert "Traceback" not in errors, errors
