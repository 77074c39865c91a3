"""Make and serve one of the webs of the race, and run a command in it.

    .venv/bin/python benches/web.py plain [--pages 6000] [--into DIR] -- .venv/bin/fyke crawl {seed} --scope web \\
        --config {settings} --into /tmp/crawl

`{seed}` is the URL of the first page, `{settings}` a file with no delays, no table of links and the web's name
server, `{ca}` the certificates to trust. The command cannot reach anything outside. Afterwards the server's log is
summed up. `-- bash` gives a shell in the web; without a command the web is only made.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from webs import cache_folder, made, size_of
from webs.alone import go_alone
from webs.known import WEBS
from webs.serving import served


def asked(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("web", choices=WEBS)
    parser.add_argument("--pages", type=int, help="how large to make it")
    parser.add_argument("--into", type=Path, help=f"where webs are kept  [default: {cache_folder()}]")
    return parser.parse_args(arguments)


def main() -> None:
    mark = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    wanted, command = asked(sys.argv[1:mark]), sys.argv[mark + 1 :]
    web = WEBS[wanted.web]
    files = made(web, size_of(web, wanted.pages), wanted.into)
    if not command:
        print(f"{web.name}: {files}")
        return
    go_alone()
    with tempfile.TemporaryDirectory() as name, served(web, files, Path(name)) as up:
        for place, what in {"{seed}": web.first_page, "{settings}": str(up.settings), "{ca}": up.ca}.items():
            command = [argument.replace(place, what) for argument in command]
        started = time.perf_counter()
        with up.counted() as log:
            subprocess.run(command, check=False)
            print(f"{time.perf_counter() - started:.1f} s; {log.read()}")


if __name__ == "__main__":
    main()
