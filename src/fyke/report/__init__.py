"""What did this crawl find, and how did it fare?

    tables, archive, index ─► survey, languages ─► charts ─► page
                                    papers ─► comparison ─┘

`write_report` makes one HTML file of a crawl, running or not: no scripts, nothing from outside, dark or light as the
reader's machine is.
"""

from fyke.report.page import write_report

__all__ = ["write_report"]
