"""Judgement of documents by people: the first documents of runs as sheets to fill in, and the sheets as qrels."""

from rnnreranker.evaluate.pool.sheets import make_sheets, read_judgements

__all__ = ["make_sheets", "read_judgements"]
