"""What did the server say, and how gently was it asked?

`fetcher` takes visits and gives exchanges. A `host` is one record: `host_desk` enters it and writes it down,
`workbench` says when it may be asked, `rules_desk` brings the rules of its origins (`robots`), `names` its addresses.
`faults` has the cost of each outcome, `book` and `rests` have all that must outlive the process, `wire` has the
protocols.
"""
