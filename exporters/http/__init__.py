"""The HTTP server and the live page."""
