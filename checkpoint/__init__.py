"""What is on disk: reads a checkpoint, foresees the restart, plans the remedy."""
