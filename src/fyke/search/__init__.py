"""Which pages answer this query?

    archive ─► read ─► lots ─► merge ─► plan ─► write ─► engine ─► search
    (indexer)                  links ─► rank ─┘

`Indexer` makes the index of a crawl directory, in `DIR/index/`, also while the crawl runs. `Searcher` answers from one
index or several.

- *read*: what the archive says goes into *lots*, files written once.
- *merge*: all lots tell which version of each page is current, which of equal pages stands for them, and what other
  pages call it. So they tell which documents differ from those written before.
- *write*: only these documents go to the engine, tantivy.

Every step is a function of the files before it and is repeated if it was interrupted. So an index does not depend on
how often, when, and in how many pieces it was made.

Exports and reports use the parts that read the archive. Only parts that need the engine load it.
"""
