"""What do we remember, and what waits?

Memory holds only what is needed now; all else of a shard lies in one directory, its `Store`, in files that
are written once or only grow. Two structures use it: `Drum`, a sorted table that is asked and changed in
batches, and `DiskQueue`, a FIFO of column batches. A `Checkpoint` names their files and lengths in a
manifest; starting again means reading the newest one. `model` says what it all costs, after IRLbot.
"""

from fyke.disk.checkpoint import Checkpoint, CheckpointStatistics, Snapshot, look
from fyke.disk.drum import Answers, Drum, DrumStatistics
from fyke.disk.operations import Combine, Op
from fyke.disk.queue import DiskQueue, QueueStatistics
from fyke.disk.store import State, Store

__all__ = [
    "Answers",
    "Checkpoint",
    "CheckpointStatistics",
    "Combine",
    "DiskQueue",
    "Drum",
    "DrumStatistics",
    "Op",
    "QueueStatistics",
    "Snapshot",
    "State",
    "Store",
    "look",
]
