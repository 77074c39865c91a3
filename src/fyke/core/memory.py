"""How much memory does this process have?"""

import resource
from pathlib import Path

PAGE_BYTES = resource.getpagesize()


def memory_bytes() -> int:
    """Resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def peak_memory_bytes() -> int:
    """The most resident memory this process had, in bytes.

    From /proc, since getrusage also counts what the process was before it became this program: its parent.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
