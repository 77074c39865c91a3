"""When is a page worth its next visit?

`belief` learns how often pages change from what visits see, `signals` how far lists tell it; `worth` and `finds` say
what a visit is worth by then, `choice` which are made. All work on columns: they know neither files nor a clock.
"""
