"""What comes in: Spark's events, and what a look at the driver adds to them."""
