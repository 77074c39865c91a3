"""The columns of the tables, each with a sentence on its meaning for people who query them.

Read by the writers in `fyke.archive.tables`, by `fyke.archive.reading`, and by people: the sentences are in the Parquet
files, as field metadata. Text is never null unless the sentence says so.
"""

import pyarrow as pa

_WORD = pa.dictionary(pa.int32(), pa.string())
_TIME = pa.timestamp("us", tz="UTC")


def _field(name: str, kind: pa.DataType, sentence: str) -> pa.Field:
    return pa.field(name, kind, metadata={"description": sentence})


PAGES = pa.schema(
    [
        _field("key", pa.uint64(), "BLAKE2b of the canonical URL, 64 bits of it (`digest_size=8`, little-endian)."),
        _field("url", pa.string(), "The canonical URL."),
        _field("host", pa.string(), "Host name or address of the URL."),
        _field("domain", pa.string(), "Pay-level domain of the host."),
        _field("status", pa.uint16(), "The status code of the answer; 0 if there was no answer."),
        _field("outcome", _WORD, "What became of the visit: a fyke.core.outcomes.Outcome."),
        _field("detail", pa.string(), "What went wrong, in words."),
        _field("fetched_at", _TIME, "When the request was sent."),
        _field("duration_s", pa.float32(), "Seconds from the request to the end of the answer."),
        _field("depth", pa.uint16(), "Number of links from a seed to this URL."),
        _field("via", pa.uint64(), "Key of the page it was found on; 0 for a seed."),
        _field("kind", _WORD, "How it was found: page, requisite or seed; listing: in a sitemap or feed."),
        _field("tries", pa.uint8(), "Number of visits that had failed before this one."),
        _field("media_type", _WORD, "The media type, without parameters."),
        _field("charset", _WORD, "The character encoding; empty if the body is not text, or was not read."),
        _field("title", pa.string(), "The page's title; empty if it has none, or was not read."),
        _field("body_bytes", pa.uint64(), "Bytes of the body on the wire."),
        _field("content_bytes", pa.uint64(), "Bytes of the decoded body; 0 if it was not opened, as that of an error."),
        _field("digest", pa.string(), "Payload digest in the archive, sha1: and Base32; empty without a record."),
        _field("fingerprint", pa.uint64(), "BLAKE2b of the decoded body, 64 bits of it; 0 if it was not read."),
        _field(
            "duplicate",
            pa.bool_(),
            "Whether its links were not read, because the same body was read before: at another URL, or at this one, as"
            " of a page that changed and changed back. Compare `fingerprint` to find copies.",
        ),
        _field(
            "noindex",
            pa.bool_(),
            "Whether the page asks search engines not to show it; if it was not read, its header.",
        ),
        _field("links", pa.uint32(), "Number of links found on the page; 0 if it was not read."),
        _field("redirect_to", pa.string(), "The canonical URL it redirects to; null if it does not."),
        _field("address", pa.string(), "The server's IP address."),
        _field("warc_file", _WORD, "File of the archive record, below the crawl directory; null without a record."),
        _field("warc_offset", pa.uint64(), "Byte of that file at which the record begins; null without a record."),
        _field("warc_length", pa.uint64(), "Length of the record in bytes; null without a record."),
    ],
    metadata={"description": "One row for each visit that ended. A body that is unchanged, or known, is not read."},
)

LINKS = pa.schema(
    [
        _field("source", pa.uint64(), "Key of the page the link is on."),
        _field("target", pa.uint64(), "Key of the URL that the link points at."),
        _field("target_url", pa.string(), "The canonical URL that the link points at."),
        _field("kind", pa.uint8(), "0: page, 1: requisite, 2: nofollow, 3: redirect (a fyke.core.batches.LinkKind)."),
    ],
    metadata={"description": "One row for each time that a link was found."},
)

HOSTS = pa.schema(
    [
        _field("host", pa.string(), "The host name or address."),
        _field("domain", pa.string(), "Pay-level domain of the host."),
        _field("address", pa.string(), "The server's IP address; empty if the name was never resolved."),
        _field("robots", _WORD, "State of its robots.txt at the port of https or http; empty if not asked for."),
        _field(
            "crawl_delay_s", pa.float32(), "The Crawl-delay in its robots.txt, for us; null if there is none, or 0."
        ),
        _field("pages", pa.uint64(), "Number of visits that brought a page: no error, redirect or 304."),
        _field(
            "failures", pa.uint64(), "Number of visits without an answer, in a row, up to the last; 0 after an answer."
        ),
        _field("retired", pa.string(), "Why it was given up; empty if it was not."),
        _field("first_seen", _TIME, "When it was first visited."),
        _field("last_seen", _TIME, "When it was last visited."),
    ],
    metadata={"description": "One row for each host, written when the crawl closes."},
)

DOMAINS = pa.schema(
    [
        _field("domain", pa.string(), "The pay-level domain."),
        _field("in_degree", pa.uint32(), "Number of other domains that link to it, each counted once."),
        _field("rank", pa.uint32(), "Its place by in-degree, 1 for the highest; 0 if it is not ranked."),
        _field("budget", pa.uint16(), "Number of its URLs that a round lets through."),
        _field("urls", pa.uint32(), "Number of distinct URLs of it that the crawl accepted."),
        _field("fetched", pa.uint32(), "Number of its pages that were fetched whole."),
        _field("waiting", pa.uint32(), "Number of its URLs whose visit has not ended."),
        _field("host_delay_s", pa.float32(), "Least seconds between two requests to one of its hosts."),
    ],
    metadata={"description": "One row for each pay-level domain, written when the crawl closes."},
)

NEAR = pa.schema(
    [
        _field("key", pa.uint64(), "Key of a page whose main text is nearly that of another page."),
        _field("near_of", pa.uint64(), "Key of that other page, mostly the first; it is the key of no row."),
        _field(
            "distance", pa.float32(), "Estimated share of runs of four words that only one of the two has: 0 to 0.21."
        ),
    ],
    metadata={"description": "One row for each page that says nearly what an earlier one said, written by fyke index."},
)

SCHEMAS = {"pages": PAGES, "links": LINKS, "hosts": HOSTS, "domains": DOMAINS, "near": NEAR}


def journalled(schema: pa.Schema) -> pa.Schema:
    """Return `schema` as journals have it: without dictionaries, because a dictionary would have to outlive a crash."""
    return pa.schema([f.with_type(pa.string()) if pa.types.is_dictionary(f.type) else f for f in schema])
