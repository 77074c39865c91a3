"""The laboratory: a synthetic web with a ledger, a simulator that drives the real loop, and the papers' arithmetic.

It answers three questions: what if the web were on this machine, what does a policy do to it, and what machine does a
crawl take? The crawler never imports it.
"""
