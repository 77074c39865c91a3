"""What is in this page? Media type, charset, links, title, and whatever processing modules find.

`fyke.crawl` makes one `Parser` and hands it every answer. Nothing here does I/O or remembers pages.
"""

from fyke.harvest.parser import Parser

__all__ = ["Parser"]
