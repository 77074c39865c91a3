"""Which URLs are the same page? Learns rewrite rules from what a crawl fetched."""
