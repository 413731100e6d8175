"""Spark Connect: the client, the driver, and the patches that PySpark needs."""
