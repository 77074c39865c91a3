"""What did the server say? One engine over libcurl, a protocol module for each kind of URL, decoding, faults.

A visit comes in with the address of its server and leaves as an exchange, the bytes as the wire had
them: `Registry.fetch` picks the module by scheme, the module words the request, `CurlEngine` carries
it out, the module judges the answer. Afterwards `decode_body` gives the content, and `FAULTS` says
what the outcome costs.
"""

from fyke.fetch.decoding import Decoded, accepted_codings, decode_body
from fyke.fetch.engine import CurlEngine, EngineStatistics
from fyke.fetch.faults import FAULTS, Fault, FaultPolicy, Wait, retry_after
from fyke.fetch.protocols.registry import Registry, RegistryStatistics, build_registry
from fyke.fetch.transfer import Dialect, Request

__all__ = [
    "FAULTS",
    "CurlEngine",
    "Decoded",
    "Dialect",
    "EngineStatistics",
    "Fault",
    "FaultPolicy",
    "Registry",
    "RegistryStatistics",
    "Request",
    "Wait",
    "accepted_codings",
    "build_registry",
    "decode_body",
    "retry_after",
]
