"""What the script of a paper's page knows of its cells: every text once, and numbers of texts wherever it stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rnnreranker.regress.papers.cells import STATES

KEYS = (
    *("id", "row", "dataset", "group", "measure", "protocol", "where", "state", "note"),
    *("published", "measured", "difference", "letters", "tuned"),
)


def numbered(entries: Sequence[Mapping[str, Any]], details: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The cells of a page and their details for its script.

    The commands of a table repeat each other from cell to cell; a number each makes a page less than half as long.

    Args:
        entries: of the page, as `cells.entries` makes them with `details`, of which the page gets those it needs.

    Returns:
        `texts`: every value once, of a command the numbers of its words; `keys`: what the numbers of a cell say, in
        their order, before that of its details; `cells`, `details`: numbers of `texts`. Parameters, and each entry of a
        history, are names and values in turn.

    >>> about = {"commands": ["a", "b a"], "parameters": [["k", 21]], "history": []}
    >>> made = numbered([dict.fromkeys(KEYS, "a") | {"about": 0}], [about])
    >>> made["texts"], made["details"], made["cells"][0][-2:]
    (['a', 'b', (1, 0), 'k', 21], [{'commands': [0, 2], 'parameters': [3, 4], 'history': []}], [0, 0])
    """
    texts: dict[tuple[type, Any], int] = {}  # with the type: 1, 1.0 and True are not the same

    def number(value: Any) -> int:
        return texts.setdefault((type(value), value), len(texts))

    def flat(pairs: Iterable[Sequence[Any]]) -> list[int]:
        return [number(part) for pair in pairs for part in pair]

    def by_words(line: str) -> int:
        words = line.split(" ")
        return number(tuple(map(number, words)) if len(words) > 1 else line)

    own: dict[int, int] = {}
    cells = [[*(number(entry[key]) for key in KEYS), own.setdefault(entry["about"], len(own))] for entry in entries]
    abouts = [
        {
            "commands": [by_words(line) for line in details[about]["commands"]],
            "parameters": flat(details[about]["parameters"]),
            "history": [flat(entry) for entry in details[about]["history"]],
        }
        for about in own
    ]
    return {
        "keys": KEYS,
        "states": STATES,
        "cells": cells,
        "details": abouts,
        "texts": [value for _, value in texts],
    }
