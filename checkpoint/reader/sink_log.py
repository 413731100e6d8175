"""The file sink's own log beside its output: which batches it has. Not part of the checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamgauge.model.checkpoint_names import batch_id

from .store import as_store

if TYPE_CHECKING:
    import os

    from .store import Store


def read_sink_batches(output: str | os.PathLike[str] | Store, **options: Any) -> int:
    """Newest batch in `<output>/_spark_metadata`, -1 for none; raises CannotLookError."""
    store = as_store(output, **options)
    names = (entry.name.removesuffix(".compact") for entry in store.list("_spark_metadata"))
    return max((number for name in names if (number := batch_id(name)) is not None), default=-1)
