"""What did the server say, and how gently was it asked?

`engine` takes visits and gives exchanges; `names` has the addresses, `workbench` the rests, `robots` the rules,
`faults` the cost of each outcome, `book` and `rests` what must outlive the process, `wire` the protocols.
"""
