"""Fyke: a web crawler."""
