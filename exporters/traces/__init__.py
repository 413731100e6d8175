"""OpenTelemetry traces: one per batch and one per start."""
