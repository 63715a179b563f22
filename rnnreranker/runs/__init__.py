"""Runs: ranked entries of queries, and their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base import late_names

if TYPE_CHECKING:
    from rnnreranker.runs.run import Run as Run

__getattr__, __dir__ = late_names(__name__)
