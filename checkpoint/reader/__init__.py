"""What is on disk, as data: stores, logs, state files, the report. No opinion about a restart."""
