"""A processing module like Mercator's: count the tags of pages and the sizes of images.

    fyke crawl http://example.org/ --into there --config examples/tag_statistics.toml

With `[plugins] processors = ["examples.tag_statistics:TagStatistics"]` and images in scope
(`requisites = true`). The figures are printed when the crawl ends.
"""

import atexit
from collections import Counter

from fyke import Page


class TagStatistics:
    """Counts HTML tags, and image sizes in powers of two."""

    media_types = ("text/html", "image/*")

    def __init__(self) -> None:
        self.tags: Counter[str] = Counter()
        self.image_sizes: Counter[int] = Counter()
        atexit.register(self.show)

    def process(self, page: Page) -> None:
        if page.media_type == "text/html":
            self.tags.update(node.tag for node in page.tree.css("*"))
        else:
            self.image_sizes[len(page.content).bit_length()] += 1

    def show(self) -> None:
        for tag, count in self.tags.most_common(20):
            print(f"{count:>10,}  <{tag}>")
        for bits, count in sorted(self.image_sizes.items()):
            print(f"{count:>10,}  images below {1 << bits:,} bytes")
