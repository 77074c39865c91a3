"""The web at its worst: named behaviours of servers and name servers, on real sockets of 127.0.0.0/8.

Each behaviour is a row of a table (`answers`, `http2`, `documents`, `rules`, `resolving`), made of steps that are
data (`script`). `servers` plays them in its own process, with a ledger of requests. `judge` runs a crawler against
them and reports what it did. `benches/hostile.py` prints the whole table.

Every behaviour has its own host at its own address. `start.hostile` links to all requested hosts; `normal-0.hostile`
and so on are well-behaved sites.
"""
