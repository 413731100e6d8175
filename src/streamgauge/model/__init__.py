"""What is known of every query: events, observations, records, verdicts. Pure: no Spark, no clock, no I/O."""
