"""How does it all run here? The loop, its two halves, and the rooms that keep, show and explain it."""
