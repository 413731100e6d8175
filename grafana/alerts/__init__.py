"""Alert rules, written from one table: Prometheus, Kubernetes, Alertmanager, the runbook index."""
