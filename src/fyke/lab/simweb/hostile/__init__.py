"""The web at its worst: named behaviours of servers and name servers, on real sockets of 127.0.0.0/8.

Each behaviour is a row of a table (`answers`, `http2`, `documents`, `rules`, `resolving`), made of steps that are data
(`script`). `servers` plays them, in a process of its own, with a ledger of what was asked; `judge` runs a crawler
against them and says what it did. `benches/hostile.py` prints the whole table.

Every behaviour has a host of its own, at an address of its own; `start.hostile` links to all that are asked for, and
`normal-0.hostile` and so on are sites as they should be.
"""
