"""What do we remember, and what waits? Two primitives on disk, and the checkpoint over both.

`Drum` is a sorted table merged in batches, `DiskQueue` a queue read in sequence; whatever grows with a
crawl is one of them. Both live in a `Store`, whose `Checkpoint`s make a restart exact.
"""
