"""Kafka itself: what the brokers say of the topics that queries read."""
