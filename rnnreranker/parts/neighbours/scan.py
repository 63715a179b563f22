"""What of a block of products is among the highest of its rows and columns, compiled: strips' maxima, then few strips.

A list is a heap of scores, the lowest in front. A product is put into one if it is above the list's floor.
"""

from __future__ import annotations

import numpy as np

from rnnreranker.rnn.kernel_lists import compiled, kept

STRIP = 32  # products whose maximum is looked at before them


@compiled
def _put(scores, documents, held, floors, line, score, document):  # type: ignore[no-untyped-def]
    """Put a document whose score is above the floor into a list, in place of the lowest where it is full."""
    size, i = scores.shape[1], held[line]
    if i < size:
        held[line] = i + 1
        while i > 0 and scores[line, (i - 1) >> 1] > score:
            above = (i - 1) >> 1
            scores[line, i], documents[line, i] = scores[line, above], documents[line, above]
            i = above
    else:
        i = 0
        while 2 * i + 1 < size:
            below = 2 * i + 1
            if below + 1 < size and scores[line, below + 1] < scores[line, below]:
                below += 1
            if scores[line, below] >= score:
                break
            scores[line, i], documents[line, i] = scores[line, below], documents[line, below]
            i = below
    scores[line, i], documents[line, i] = score, document
    if held[line] == size:
        floors[line] = max(floors[line], scores[line, 0])


@compiled
def _maxima(products, of_rows, of_columns):  # type: ignore[no-untyped-def]
    """The maxima of strips: of row r the strip products[r, s::width], of column c those of so many rows each."""
    rows, columns = products.shape
    width = of_rows.shape[1]
    of_rows[:], of_columns[:] = -np.inf, -np.inf
    for t in range(len(of_columns)):
        for r in range(t * STRIP, min(rows, (t + 1) * STRIP)):
            for j in range(STRIP):
                for s in range(width):
                    value = products[r, j * width + s]
                    of_rows[r, s] = value if value > of_rows[r, s] else of_rows[r, s]
            for c in range(columns):
                value = products[r, c]
                of_columns[t, c] = value if value > of_columns[t, c] else of_columns[t, c]


@kept
def scan(  # type: ignore[no-untyped-def]
    products, scores, documents, held, floors, first, their_scores, their_documents, their_held, their_floors, own_first
):
    """Offer products (R, C) to the lists of R rows, and those of the last columns to their lists.

    Args:
        scores, documents: (R, m); held, floors: (R,): the lists of the rows, changed; first: the document of column 0.
        their_scores, …: the same of the last columns, at most C; own_first: the document of row 0.
    """
    rows, columns = products.shape
    width, before = columns // STRIP, columns - len(their_held)
    of_rows = np.empty((rows, width), dtype=np.float32)
    of_columns = np.empty((-(-rows // STRIP), columns), dtype=np.float32)
    _maxima(products, of_rows, of_columns)
    for r in range(rows):
        for s in range(width):
            if of_rows[r, s] > floors[r]:
                for c in range(s, STRIP * width, width):
                    if products[r, c] > floors[r]:
                        _put(scores, documents, held, floors, r, products[r, c], first + c)
        for c in range(STRIP * width, columns):
            if products[r, c] > floors[r]:
                _put(scores, documents, held, floors, r, products[r, c], first + c)
    for t in range(len(of_columns)):
        for c in range(before, columns):
            if of_columns[t, c] > their_floors[c - before]:
                for r in range(t * STRIP, min(rows, (t + 1) * STRIP)):
                    if products[r, c] > their_floors[c - before]:
                        line, score = c - before, products[r, c]
                        _put(their_scores, their_documents, their_held, their_floors, line, score, own_first + r)
