"""The boards, in the order in which people meet them."""

from __future__ import annotations

from .agent import AGENT_BOARD
from .board import Board
from .checkpoint import CHECKPOINT_BOARD
from .fleet import FLEET
from .naming import name_queries
from .query import QUERY_BOARD
from .regressions import REGRESSIONS
from .slo import SLO_BOARD
from .sources import SOURCES
from .state import STATE_BOARD

BOARDS: tuple[Board, ...] = tuple(
    name_queries(board)
    for board in (
        FLEET,
        QUERY_BOARD,
        STATE_BOARD,
        SOURCES,
        CHECKPOINT_BOARD,
        REGRESSIONS,
        SLO_BOARD,
        AGENT_BOARD,
    )
)
