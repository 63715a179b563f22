"""What `tune` and `tune train` share: flags, the table of held-out values, the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.errors import require
from rnnreranker.base.files import check_writable
from rnnreranker.base.tables import interval, print_table
from rnnreranker.base.typed_numbers import whole
from rnnreranker.evaluate.protocols import PROTOCOL_HELP, PROTOCOLS

if TYPE_CHECKING:
    from rnnreranker.lab.tune.heldout import HeldOut

UNRECORDED = ("--record", "--output", "--plots", "--storage")  # they say where this machine keeps things


def add_candidates(group: Any, hits: int) -> None:
    """The flags --run and --hits."""
    group.add_argument("--run", help="candidates (default: retrieved densely)")
    group.add_argument(
        "--hits", type=command.positive, default=hits, metavar="N", help=f"candidates per query (default: {hits})"
    )


def add_test_flags(group: Any, instead: str, measure: str) -> None:
    """The flags of a test on other queries, `instead` of something, and of the `measure`, by what it is."""
    group.add_argument("--test-topics", metavar="TOPICS", help=f"test on these queries in place of {instead}")
    group.add_argument("--test-qrels", metavar="QRELS", help="their judgements")
    group.add_argument("--measure", default="nDCG@10", metavar="NAME", help=f"{measure} (default: nDCG@10)")
    group.add_argument("--protocol", choices=PROTOCOLS, metavar="NAME", help=PROTOCOL_HELP)


def add_search_flags(group: Any, trials: int, of: str, number: Any = command.positive) -> None:
    """The flags of a search: its trials, by what they are `of`, its seed, its storage, and where it begins."""
    group.add_argument("--trials", type=number, default=trials, metavar="N", help=f"{of} (default: {trials})")
    group.add_argument("--seed", type=whole, default=0, metavar="N", help="of the sampler (default: 0)")
    group.add_argument("--storage", metavar="FILE", help="keep the trials here, and go on from them after a kill")
    text = "where to begin, and what to compare with: tas-b, vectors, … or a YAML file"
    group.add_argument("--preset", metavar="NAME", help=text)


def add_output_flags(group: Any, readers: str, drawn: str) -> None:
    """The flags of what is written: the settings for `readers`, the record, pictures of what is `drawn`."""
    group.add_argument("--output", metavar="FILE.yaml", help=f"the settings that were best, for {readers}")
    group.add_argument("--record", metavar="FILE.json", help="write the record of the tuning")
    group.add_argument("--plots", metavar="DIR", help=f"pictures of {drawn}")


def check_outputs(output: str | None, record: str | None, plots: str | None) -> None:
    """Refuse outputs that cannot be written, before any work.

    Raises:
        InputError: a file that cannot be written; MissingDependencyError: pictures without matplotlib.
    """
    check_writable(output, record)
    if plots:
        require("matplotlib", "--plots", "'rnnreranker[plots]'")


def print_held_out(held_out: HeldOut, measure: str, names: tuple[str, str, str]) -> None:
    """Print the means under the names of base, default and tuned, and the difference of the last two."""
    values = (held_out.base, held_out.default, held_out.tuned)
    print_table(
        [f"{measure} held out", "mean"],
        [
            *([name, f"{value:.4f}"] for name, value in zip(names, values, strict=True)),
            ["tuned - default", interval(held_out.gain, held_out.low, held_out.high)],
            ["p (paired t-test)", f"{held_out.p:.3f}"],
        ],
    )


def write_outcome(
    path: str | None,
    argv: Sequence[str],
    name: str,
    outcome: dict[str, Any],
    begun: float,
    *,
    kind: str = "tuning",
    inputs: Mapping[str, str] | None = None,
) -> None:
    """Write the record of a tuning, if a file was given for it; see `record.of_command`."""
    if path:
        from rnnreranker.base.record import of_command, write_records

        made: dict[str, Any] = {"room": "tune", "argv": argv, "begun": begun, "without": UNRECORDED}
        write_records(path, [of_command(kind, name, outcome, inputs=inputs, **made)])
