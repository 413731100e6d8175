"""streamgauge: the telemetry agent for Apache Spark Structured Streaming."""

__version__ = "0.1.0"
