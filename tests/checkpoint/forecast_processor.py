"""A transformWithState query in Python: counts the rows of each key."""

from __future__ import annotations

from typing import Any


def count_rows(stream: Any) -> Any:
    """Count rows by key with one value of state."""
    import pandas as pd
    from pyspark.sql.streaming import StatefulProcessor

    class Counter(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.total = handle.getValueState("total", "n LONG")

        def handleInputRows(self, key: Any, rows: Any, timer_values: Any) -> Any:  # noqa: N802
            before = self.total.get()[0] if self.total.exists() else 0
            count = before + sum(len(part) for part in rows)
            self.total.update((count,))
            yield pd.DataFrame({"k": [key[0]], "n": [count]})

        def close(self) -> None:
            pass

    return stream.groupBy("k").transformWithStateInPandas(
        statefulProcessor=Counter(),
        outputStructType="k STRING, n LONG",
        outputMode="Update",
        timeMode="None",
    )
