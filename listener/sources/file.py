"""Files: `{"logOffset": 3}` counts batches of its own log, not rows; Spark tells no latest offset.

What waits is known only where the source reports it (`numFilesOutstanding`; Auto Loader does).
"""

from __future__ import annotations

from .reader import Reader

READER = Reader(kind="file", beginnings=("FileStreamSource[",))
CLOUD_FILES = Reader(kind="cloudfiles", beginnings=("CloudFilesSource[",))
