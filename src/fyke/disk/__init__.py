"""What do we remember, and what waits?

Memory holds only what is needed now. The rest of a shard lies in one directory, its `Store`, in files that
are written once or only grow. Two structures use it: `Drum`, a sorted table that is asked and changed in
batches, and `DiskQueue`, a FIFO of column batches. A `Checkpoint` names their files and lengths in a
manifest; a restart reads the newest one. `fyke.lab.plan.model` computes the costs, after IRLbot.
"""
