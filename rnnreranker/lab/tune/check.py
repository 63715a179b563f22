"""What can be seen to fail in a tuning, before any work; and a warning of few queries."""

from __future__ import annotations

from rnnreranker.base import command
from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, nearest, refuse
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.evaluate.protocols import PROTOCOLS
from rnnreranker.lab.tune.choice_rules import RULES
from rnnreranker.lab.tune.request import LeaveOutRequest, QuerySetRequest, TuneRequest, TuningRequest


def check(request: TuneRequest | LeaveOutRequest) -> None:
    """Refuse what can be seen to fail in a tuning of reranking.

    Raises:
        InputError: everything that is wrong; settings that there are not.
    """
    faults: list[tuple[object, str]] = []
    if isinstance(request, TuneRequest):
        lonely = request.test_run is not None and request.test_topics is None
        faults += [
            _below("trials", request.trials, 0),
            _below("folds", request.folds, 2),
            (lonely, f"{argument('test_run')} needs {argument('test_topics')} and {argument('test_qrels')}"),
        ]
    else:
        unknown = request.rule not in RULES
        faults.append((unknown, f"{argument('rule', request.rule)}: {nearest(request.rule, RULES)}"))
        faults.append(_below("trials", request.trials, 1))
    check_all(request, *faults)
    _ = request.searched, request.devices  # read now: each says what is wrong with what it reads


def check_all(request: TuningRequest, *faults: tuple[object, str]) -> None:
    """Refuse what can be seen to fail in any tuning, and `faults`, see `refuse`.

    Raises:
        InputError: everything that is wrong.
    """
    own = [_below("hits", request.hits, 1)]
    if isinstance(request, QuerySetRequest):
        halves = (request.test_topics is None) != (request.test_qrels is None)
        own.append((halves, f"{argument('test_topics')} and {argument('test_qrels')} go together"))
    unknown = request.protocol not in (None, *PROTOCOLS)
    own.append((unknown, f"{argument('protocol', request.protocol)}: {nearest(str(request.protocol), PROTOCOLS)}"))
    refuse(*faults, *own)
    if len(parse_measures(request.measure)) != 1:
        raise InputError(f"{argument('measure', repr(request.measure))}: expected one measure")


def notice_if_few(number: int, what: str, few: int) -> None:
    """Report a search on so few queries that the best trial is mostly chance."""
    if number < few:
        command.notice(
            f"{number} {what}, fewer than {few}: differences between trials are mostly chance; trust the held-out "
            "interval, not the value of the best trial"
        )


def _below(name: str, value: int, least: int) -> tuple[bool, str]:
    """The fault of a number that is too small."""
    return value < least, f"{argument(name, value)}: expected {least} or more"
