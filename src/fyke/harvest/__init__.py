"""What is in this page? Media type, charset, links, title, and whatever processing modules find.

`worker` gets every answer, has one `Parser` read it, and gives its links as columns.
"""

from fyke.harvest.parser import Parser

__all__ = ["Parser"]
