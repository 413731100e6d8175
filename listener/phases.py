"""The phase of a query, from the message of its status; the same texts over Py4J and over Connect."""

from __future__ import annotations

from streamgauge.model.observations import Phase

# How Spark's own messages begin; what follows may hold paths and stack traces.
_BEGINNINGS = (
    ("Waiting for data", Phase.WAITING_FOR_DATA),
    ("Waiting for next trigger", Phase.WAITING_FOR_TRIGGER),
    ("Getting offsets", Phase.OFFSETS),
    ("Processing new data", Phase.PROCESSING),
    ("Committing epoch", Phase.EPOCHS),
)


def phase_of(message: str) -> Phase:
    """The phase that a status message stands for."""
    return next((phase for begin, phase in _BEGINNINGS if message.startswith(begin)), Phase.OTHER)
