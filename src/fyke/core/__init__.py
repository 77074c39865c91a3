"""What words do we use? The vocabulary every other room is written in."""
