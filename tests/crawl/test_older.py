"""A crawl of another version, whose keys are others, is refused in a line and stays as it is."""

from pathlib import Path

from commands import in_process
from crawl.raw_answers import raw_server
from crawl.runs import crawl, settings
from fyke.disk.manifest import FORMAT
from fyke.disk.sealed import sealed, unsealed

HOST = "127.0.16.4"
NO_RULES = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"


def test_a_crawl_with_other_keys_is_refused(tmp_path: Path) -> None:
    into = tmp_path / "crawl"
    config = settings(tmp_path, dns={"private": [HOST]})
    with raw_server([HOST], lambda _, path: NO_RULES if path == "/robots.txt" else PAGE) as server:
        crawl(into, config, server.seeds[0])
        manifests = sorted(into.glob("state/*/manifest-*.json"))
        older = {path: data for path in manifests if (data := path.read_bytes())}
        for path, data in older.items():
            path.write_bytes(sealed("manifest", unsealed("manifest", data) | {"format": FORMAT - 1}))
        before = {path: path.read_bytes() for path in older}
        for command in (["crawl", "--into"], ["status"], ["why"], ["check"], ["report"]):
            ran = in_process(*command, str(into), *([server.seeds[0]] if command == ["why"] else []))
            assert ran.status not in (0, 1), (command, ran)
            assert f"has format {FORMAT - 1}, this Fyke reads {FORMAT}" in ran.errors, command
            assert len(ran.errors.splitlines()) == 1
        assert before == {path: path.read_bytes() for path in older}
        for path, data in older.items():
            path.write_bytes(data)
        assert in_process("check", str(into)).status == 0
