"""Sources written in Python: their offsets are the author's own.

Those in Kafka's form, `{"anything": {"0": 7}}` with a number for each partition, count rows: by this
a source of one's own tells how far behind its readers are (`reportLatestOffset`, Spark 4.2+).
"""

from __future__ import annotations

from .marks import read_marks
from .reader import Reader

READER = Reader(
    kind="python",
    beginnings=(
        "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream",
        "PythonMicroBatchStream",
    ),
    marks=read_marks,
)
