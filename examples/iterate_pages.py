"""The Python interface: `python examples/iterate_pages.py http://example.org/ there`. The same command goes on."""

import sys

import fyke

if len(sys.argv) != 3:
    print("usage: python examples/iterate_pages.py URL FOLDER", file=sys.stderr)
    sys.exit(2)
with fyke.Crawl(sys.argv[1], into=sys.argv[2], pages=100) as crawl:
    for page in crawl:
        print(page.url, page.title)
print(crawl.ending, crawl.statistics().outcomes)
