"""The words that every other room uses."""
