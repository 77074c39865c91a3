"""Agents of one crawl, and what passes between them."""
