"""Faults of checkpoints (lint) and what moved between two of them (diff)."""
