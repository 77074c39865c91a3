"""When is a page worth its next visit?

`belief` learns how often pages change from what visits see; `worth` says what a visit is worth by then. Both are pure
functions over columns: they know neither files nor a clock.
"""
