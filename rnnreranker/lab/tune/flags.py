"""What `tune` and `tune train` share: flags and their checks, the table of held-out values, the record."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.errors import InputError, refuse, require
from rnnreranker.base.files import check_writable
from rnnreranker.base.tables import interval, print_table
from rnnreranker.base.typed_numbers import whole
from rnnreranker.evaluate.measures import PROTOCOLS, parse_measures

if TYPE_CHECKING:
    from rnnreranker.lab.tune.heldout import HeldOut

UNRECORDED = ("--record", "--output", "--plots", "--storage")  # they say where this machine keeps things


def add_test_flags(group: Any, instead: str, measure: str) -> None:
    """The flags of a test on other queries, `instead` of something, and of the `measure`, by what it is."""
    group.add_argument("--test-topics", help=f"test on these queries in place of {instead}")
    group.add_argument("--test-qrels", help="their judgements")
    group.add_argument("--measure", default="nDCG@10", help=f"{measure} (default: nDCG@10)")
    group.add_argument("--protocol", choices=PROTOCOLS, default="trec", help="which grades count: see evaluate --help")


def add_search_flags(group: Any) -> None:
    """The flags of a search besides its number of trials."""
    group.add_argument("--seed", type=whole, default=0, help="of the sampler (default: 0)")
    group.add_argument("--storage", metavar="FILE", help="keep the trials here, and go on from them after a kill")
    group.add_argument("--preset", help="parameters to start from and to compare with (default: the default ones)")


def add_output_flags(group: Any, readers: str, drawn: str) -> None:
    """The flags of what is written: the parameters for `readers`, the record, pictures of what is `drawn`."""
    group.add_argument("--output", metavar="FILE.yaml", help=f"the parameters found, for {readers}")
    group.add_argument("--record", metavar="FILE.json", help="write the record of what was found")
    group.add_argument("--plots", metavar="FOLDER", help=f"draw {drawn} there")


def check_flags(args: argparse.Namespace, *faults: tuple[object, str]) -> None:
    """Refuse what can be seen to fail, before any work.

    Args:
        args: with the flags above.
        faults: of the flags of a command, see `refuse`.
    """
    halves = (args.test_topics is None) != (args.test_qrels is None)
    refuse(*faults, (halves, "--test-topics and --test-qrels go together"))
    if len(parse_measures(args.measure)) != 1:
        raise InputError(f"--measure {args.measure!r}: expected one measure")
    check_writable(args.output, args.record)
    if args.plots:
        require("matplotlib", "--plots", "'rnnreranker[plots]'")


def say_if_few(number: int, what: str, few: int) -> None:
    """Warn of a search on so few queries that the best trial is mostly luck."""
    if number < few:
        command.say(
            f"warning: {number} {what} are few (fewer than {few}): differences between trials are mostly chance; trust "
            "the held-out interval, not the value of the best trial"
        )


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
    args: argparse.Namespace,
    argv: Sequence[str],
    name: str,
    outcome: dict[str, Any],
    begun: float,
    *,
    kind: str = "tuning",
    inputs: Mapping[str, str] | None = None,
) -> None:
    """Write the record of what was found to --record, if it was given; see `record.of_command`."""
    if args.record:
        from rnnreranker.base.record import of_command, write_records

        made: dict[str, Any] = {"room": "tune", "argv": argv, "begun": begun, "without": UNRECORDED}
        write_records(args.record, [of_command(kind, name, outcome, inputs=inputs, **made)])
