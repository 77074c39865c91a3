"""Where do pages rest?

Writers: `WarcWriter` (WARC/1.1, with a CDXJ index beside each file), `PagesTable` and `LinksTable` (Parquet),
`write_hosts` and `write_domains`. Readers: `read_table`, `scan_table`, `segments`, `check_archive`.

A checkpoint takes these steps: `state()` of every writer, fsync of its `dirty_files()` (files and folders), the
manifest, then `durable()`. A crawl that starts again gives every writer its state by `restore` before anything is
written.
"""
