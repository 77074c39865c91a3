"""What is in this page? Media type, charset, links, title, and whatever processing modules find.

`worker` is handed every answer, has it read by one `Parser`, and gives links as columns.
"""

from fyke.harvest.parser import Parser

__all__ = ["Parser"]
