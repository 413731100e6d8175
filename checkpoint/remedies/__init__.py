"""Ways out of trouble: resume, replay, backfill, reset, step by step. Nothing is carried out."""
