"""Text and JSON for people and programs: the last step, where values become words."""
