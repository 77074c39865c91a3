"""`python -m fyke.lab.simweb`: a web in its own process.

Prints one line of JSON (`WebReady`) when it can be crawled. With `--control` it answers each line on standard input
(`flush`, `statistics`, `stalls`, `weather [server, names, share]`) with a line of JSON, and ends when standard input
closes. Without it, it runs until SIGINT or SIGTERM.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from fyke.lab.simweb.ledger import Ledger
from fyke.lab.simweb.spec import WebSpec, lively, plain
from fyke.lab.simweb.web import Web, WebReady


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(prog="python -m fyke.lab.simweb", description="A synthetic web on 127.0.0.0/8.")
    parser.add_argument("--spec", help="a spec as JSON; without it, --lively or a plain web")
    parser.add_argument("--lively", action="store_true", help="with every oddity")
    parser.add_argument("--pages", type=int, help="how many pages")
    parser.add_argument("--hosts", type=int, help="how many hosts")
    parser.add_argument("--seed", type=int, default=1, help="another seed is another web")
    parser.add_argument("--ledger", type=Path, help="write what the servers see to this file")
    parser.add_argument("--control", action="store_true", help="obey standard input")
    options = parser.parse_args()
    if options.spec:
        spec = WebSpec.from_json(options.spec)
    else:
        sizes = {name: getattr(options, name) for name in ("pages", "hosts") if getattr(options, name)}
        spec = (lively if options.lively else plain)(**sizes, seed=options.seed)
    Web(spec, Ledger(options.ledger)).run(_say_ready, _obey if options.control else None)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _say_ready(web: Web) -> None:
    authority = (web.authority_pem or b"").decode()
    _say(json.dumps(WebReady(web.seeds, web.dns, list(web.ports), authority)._asdict()))


async def _obey(web: Web) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        web.ledger.flush()
        word, _, said = line.strip().partition(b" ")
        answer: Any = {}
        if word == b"weather":
            web.weather.change(*json.loads(said))
        elif word == b"statistics":
            answer = web.statistics()._asdict()
        elif word == b"stalls":
            answer = web.stalls
        _say(json.dumps(answer))


if __name__ == "__main__":
    main()
