"""The root of every error that this package raises on purpose."""

from __future__ import annotations


class StreamgaugeError(Exception):
    """Something that the caller or the user can act on; the message says what, where and what to do."""
