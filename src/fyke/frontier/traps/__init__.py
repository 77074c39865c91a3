"""Which URLs are traps, whose like bring no new text, and when may they go on?

`waiting` holds them. It asks the `guard`, which weighs what is known: the `yields` of each shape, the `variants` of
pages that were read, and the `probes` of hosts that make pages up. `testimony` turns one page that was read into counts
for the shapes of its URL, `ways` lists what may be left out of a URL to find its variants. `alike` groups URLs with the
same shapes, so that each group is judged once. `tries` lets the first pages of some places through, `tally` orders the
traps that are let go.
"""
