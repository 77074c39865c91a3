"""What do we remember, and what waits?

Memory holds only what is needed now; all else of a shard lies in one directory, its `Store`, in files that
are written once or only grow. Two structures use it: `Drum`, a sorted table that is asked and changed in
batches, and `DiskQueue`, a FIFO of column batches. A `Checkpoint` names their files and lengths in a
manifest; starting again means reading the newest one. What it all costs, after IRLbot, says `fyke.lab.plan.model`.
"""
