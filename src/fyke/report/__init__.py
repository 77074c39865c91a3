"""What did this crawl find, and how did it fare?

    tables, archive, index ─► survey, languages ─► charts ─► page
                                    papers ─► comparison, broken ─┘

`page.write_report` makes one HTML file of a crawl, running or not: no scripts, nothing from outside, dark or light like
the reader's machine. `broken` finds broken links and the pages they stand on, for the report and for `fyke links`.
"""
