"""How are the bytes asked for? One client over libcurl, and a protocol module for each kind of URL.

A visit comes in with the address of its server and leaves as an exchange, with the bytes as they were on the wire.
`Registry.fetch` picks the module by scheme, the module words the request, `CurlClient` carries it out, and the module
judges the answer.
"""
