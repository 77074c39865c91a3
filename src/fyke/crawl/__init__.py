"""How does it all run here? The loop, its two halves, and who keeps, shows and explains it."""
