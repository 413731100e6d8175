"""Prometheus metrics: one table, one page per query, one collector."""
