"""What if the web were on this machine, what would this policy do to it, what machine would it take?

The laboratory: a synthetic web with a ledger, a simulator that drives the real loop, and the papers' arithmetic. The
crawler never imports it.
"""
