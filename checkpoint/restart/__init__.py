"""What Spark will do on a restart: where it starts, what stops it, the verdict and its causes."""
