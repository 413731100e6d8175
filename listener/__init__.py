"""What comes in: Spark's events, and what polling the driver and the brokers adds to them."""
