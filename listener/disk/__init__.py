"""What is read from disks of the driver's host: bounded in time, and never on Spark's threads."""
