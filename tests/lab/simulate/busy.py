"""Keeps a core busy until its input ends: `python busy.py` beside what must not notice."""

import os
import select
import sys

while not select.select([sys.stdin], [], [], 0)[0]:
    os.urandom(1 << 20)
