"""What the offsets of each kind of source mean: one reader a file."""
