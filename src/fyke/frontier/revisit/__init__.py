"""When is a page worth its next visit?

`belief` learns from visits how often pages change, `signals` how far lists tell it. `worth` and `finds` say what a
visit is worth then, and `choice` which visits are made. All work on columns: they know neither files nor a clock.
"""
