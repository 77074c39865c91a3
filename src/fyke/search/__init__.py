"""Which pages answer this query?

    archive ─► read ─► lots ─► merge ─► plan ─► write ─► engine ─► search
    (indexer)                  links ─► rank ─┘

`Indexer` makes the index of a crawl directory, in `DIR/index/`, also while the crawl runs; `Searcher` answers from
one index or several. What is read in the archive is kept in *lots*, files written once; a *merge* decides from them
which version of each page is current, which of equal pages stands for them, what other pages call it, and
so which documents differ from those written before; only these are *written* to the engine, tantivy. Every step is a
function of the files before it and is repeated when it was interrupted, so an index does not depend on how
often, when, and in how many pieces it was made.

Exports and reports use its parts that read the archive; only what needs the engine loads it.
"""
