"""A processing module like one of Mercator's: count the tags of pages and the sizes of images.

    python examples/tag_statistics.py http://example.org/ there

or, for `fyke crawl --requisites` with `PYTHONPATH=examples`:
`[plugins] processors = ["tag_statistics:TagStatistics"]`. The figures are printed when the program ends.
"""

import atexit
import sys
from collections import Counter

import fyke
from fyke import Page


class TagStatistics:
    """A counter of HTML tags, and of image sizes in powers of two."""

    media_types = ("text/html", "image/*")

    def __init__(self) -> None:
        self.tags: Counter[str] = Counter()
        self.image_sizes: Counter[int] = Counter()  # by the bits of the size in bytes
        atexit.register(self.show)

    def process(self, page: Page) -> None:
        if page.media_type == "text/html":
            self.tags.update(node.tag or "" for node in page.tree.css("*"))
        else:
            self.image_sizes[len(page.content).bit_length()] += 1

    def show(self) -> None:
        for tag, count in self.tags.most_common(20):
            print(f"{count:>10,}  <{tag}>", file=sys.stderr)
        for bits, count in sorted(self.image_sizes.items()):
            print(f"{count:>10,}  images below {1 << bits:,} bytes", file=sys.stderr)


def main(url: str, into: str) -> None:
    with fyke.Crawl(url, into=into, processors=[TagStatistics()], requisites=True) as crawl:
        for _ in crawl:
            pass


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("usage: python examples/tag_statistics.py URL FOLDER", file=sys.stderr)
        sys.exit(2)
    main(*sys.argv[1:])
