"""Dashboards, written from one table of boards: classic JSON, provisioning files, the docs' list."""
