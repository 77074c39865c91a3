"""Which URL may be fetched next? Decides over batches, and does no network I/O."""
