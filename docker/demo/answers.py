#!/usr/bin/env python3
"""A health check for an image without curl: `demo-answers PORT [PATH]`; 0 when the page is there."""

from __future__ import annotations

import sys
import urllib.request

port, path = [*sys.argv[1:], "/"][:2]
try:
    urllib.request.urlopen(f"http://127.0.0.1:{int(port)}{path}", timeout=4).close()
except OSError as error:
    sys.exit(str(error))
