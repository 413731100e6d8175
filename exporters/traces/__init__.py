"""OpenTelemetry traces: one per batch and one per start. The worker's stage before the exporters."""
