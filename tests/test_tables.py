"""Tables: aligned at a terminal, tab-separated in a pipe."""

from __future__ import annotations

import io

from rnnreranker.base.tables import print_table

HEADER = ["run", "nDCG@10", "p"]
ROWS = [["bm25", "0.5058", "-"], ["rnn on\ttop", "-0.1000", "1.2e-05"]]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_tab_separated_in_a_pipe() -> None:
    stream = io.StringIO()
    print_table(HEADER, ROWS, stream)
    assert stream.getvalue() == "run\tnDCG@10\tp\nbm25\t0.5058\t-\nrnn on top\t-0.1000\t1.2e-05\n"


def test_aligned_on_a_terminal_with_numbers_to_the_right() -> None:
    stream = Terminal()
    print_table(HEADER, ROWS, stream)
    assert stream.getvalue().splitlines() == [
        "run         nDCG@10        p",
        "bm25         0.5058        -",
        "rnn on top  -0.1000  1.2e-05",
    ]


def test_a_table_without_rows_is_its_header() -> None:
    stream = Terminal()
    print_table(["a", "b"], [], stream)
    assert stream.getvalue() == "a  b\n"
