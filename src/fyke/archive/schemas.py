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
        _field("key", pa.uint64(), "xxh3-64 of the canonical URL."),
        _field("url", pa.string(), "The canonical URL."),
        _field("host", pa.string(), "Its host name or address."),
        _field("domain", pa.string(), "Its pay-level domain."),
        _field("status", pa.uint16(), "The status code of the answer; 0 when there was none."),
        _field("outcome", _WORD, "What became of the visit: a fyke.core.outcomes.Outcome."),
        _field("detail", pa.string(), "What exactly went wrong, for people."),
        _field("fetched_at", _TIME, "When the request was sent."),
        _field("duration_s", pa.float32(), "Seconds from the request to the end of the answer."),
        _field("depth", pa.uint16(), "Links from a seed."),
        _field("via", pa.uint64(), "Key of the page it was found on; 0 for a seed."),
        _field("kind", _WORD, "How it was linked to: page, requisite or seed; listing: a sitemap or feed."),
        _field("tries", pa.uint8(), "Visits that had failed before this one."),
        _field("media_type", _WORD, "The media type, without parameters."),
        _field("charset", _WORD, "The character encoding; empty for what is not text."),
        _field("title", pa.string(), "The page's title."),
        _field("body_bytes", pa.uint64(), "Bytes of the body on the wire."),
        _field("content_bytes", pa.uint64(), "Bytes of the body once decoded."),
        _field("digest", pa.string(), "Payload digest of the archive record, sha1: and Base32; empty without one."),
        _field("fingerprint", pa.uint64(), "xxh3-64 of the decoded body; 0 when it was not read."),
        _field("duplicate", pa.bool_(), "Whether the same body was met before under another URL."),
        _field("noindex", pa.bool_(), "Whether the page asks not to be shown by search."),
        _field("links", pa.uint32(), "Links found in it."),
        _field("redirect_to", pa.string(), "The canonical URL it redirects to; null if it does not."),
        _field("address", pa.string(), "The server's IP address."),
        _field("warc_file", _WORD, "File of the archive record, below the crawl directory; null without one."),
        _field("warc_offset", pa.uint64(), "Where in that file the record begins; null without one."),
        _field("warc_length", pa.uint64(), "Bytes of the record in that file; null without one."),
    ],
    metadata={"description": "One row a visit that ended."},
)

LINKS = pa.schema(
    [
        _field("source", pa.uint64(), "Key of the page the link is on."),
        _field("target", pa.uint64(), "Key of the URL it points at."),
        _field("target_url", pa.string(), "The canonical URL it points at."),
        _field("kind", pa.uint8(), "0: page, 1: requisite, 2: nofollow, 3: redirect (a fyke.archive.LinkKind)."),
    ],
    metadata={"description": "One row a link, as often as it was found."},
)

HOSTS = pa.schema(
    [
        _field("host", pa.string(), "The host name or address."),
        _field("domain", pa.string(), "Its pay-level domain."),
        _field("address", pa.string(), "The server's IP address; empty when it was never resolved."),
        _field("robots", _WORD, "What is known of its robots.txt."),
        _field("crawl_delay_s", pa.float32(), "The Crawl-delay its robots.txt asks of us; null when none."),
        _field("pages", pa.uint64(), "Visits that brought an answer."),
        _field("failures", pa.uint64(), "Visits that brought none."),
        _field("retired", pa.string(), "Why it was given up; empty when it was not."),
        _field("first_seen", _TIME, "When it was first visited."),
        _field("last_seen", _TIME, "When it was last visited."),
    ],
    metadata={"description": "One row a host, written when the crawl closes."},
)

DOMAINS = pa.schema(
    [
        _field("domain", pa.string(), "The pay-level domain."),
        _field("in_degree", pa.uint32(), "How many other domains link to it, each counted once."),
        _field("rank", pa.uint32(), "Its place by in-degree, 1 for the highest; 0 below the ranking."),
        _field("budget", pa.uint16(), "URLs of it that a round lets through."),
        _field("urls", pa.uint32(), "Distinct URLs of it that were met and wanted."),
        _field("fetched", pa.uint32(), "Pages of it that were fetched whole."),
        _field("waiting", pa.uint32(), "URLs of it whose visit has not ended."),
        _field("host_delay_s", pa.float32(), "Least seconds between two requests to a host of it."),
    ],
    metadata={"description": "One row a pay-level domain, written when the crawl closes."},
)

NEAR = pa.schema(
    [
        _field("key", pa.uint64(), "Key of a page whose main text is nearly that of another."),
        _field(
            "near_of", pa.uint64(), "Key of the page, mostly the first, that said nearly this; no row has it as key."
        ),
        _field(
            "distance", pa.float32(), "Estimated share of runs of four words that one of both has alone: 0 to 0.21."
        ),
    ],
    metadata={"description": "One row a page that says nearly what an earlier one said, written by fyke index."},
)

SCHEMAS = {"pages": PAGES, "links": LINKS, "hosts": HOSTS, "domains": DOMAINS, "near": NEAR}


def journalled(schema: pa.Schema) -> pa.Schema:
    """Return `schema` as journals have it: without dictionaries, because a dictionary would have to outlive a crash."""
    return pa.schema([f.with_type(pa.string()) if pa.types.is_dictionary(f.type) else f for f in schema])
