"""New code against a checkpoint: what the code is, and each difference with its effect."""
