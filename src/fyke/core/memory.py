"""How much memory does this process have?"""

import resource
from pathlib import Path

PAGE_BYTES = resource.getpagesize()


def memory_bytes() -> int:
    """Resident memory of this process, in bytes; of what several processes share, as the libraries of a crawl's agents,
    its part ("proportional set size", proc_pid_smaps(5)): so those of processes may be added up."""
    try:
        return _kilobytes("/proc/self/smaps_rollup", "Pss:") * 1024
    except (OSError, StopIteration):  # not every kernel has it, nor every container shows it
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def peak_memory_bytes() -> int:
    """The most resident memory this process had, in bytes, what it shares among it.

    From /proc, since getrusage also counts what the process was before it became this program: its parent.
    """
    return _kilobytes("/proc/self/status", "VmHWM:") * 1024


def _kilobytes(path: str, name: str) -> int:
    return next(int(line.split()[1]) for line in Path(path).read_text().splitlines() if line.startswith(name))
