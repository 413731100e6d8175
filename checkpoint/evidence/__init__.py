"""All that is known of one query: its metrics page, its checkpoint and its recorded events."""
