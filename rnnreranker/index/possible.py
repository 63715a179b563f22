"""`--parts auto`: every part of an index that can be made on this machine, and why others cannot."""

from __future__ import annotations

from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.index.request import IndexRequest
from rnnreranker.parts.needs import part


def obstacles(request: IndexRequest) -> dict[str, str]:
    """What stands in the way of those parts of a request that cannot be made here.

    Models are loaded and Java is started, to know.

    Raises:
        InputError: settings that an encoder does not have.
        UnavailableError, MissingDependencyError: an encoder that the request names, or no part that can be made.
    """
    lost: dict[str, str] = {}
    for name, one in request.chosen.items():
        kind, there = part(name), {other: request.chosen[other].params for other in request.names if other not in lost}
        if (origins := kind.origins(one.params) if kind.made_of else ()) and not {*origins} & {*there}:
            lost[name] = f"it is made from the part {' or '.join(origins)}"
            continue
        try:
            kind.make(one.params, there).check()
        except (UnavailableError, MissingDependencyError) as error:
            if kind.encoder and one.params.encoder != vars(kind.Params())["encoder"]:
                raise  # what was named is not left out
            lost[name] = str(error)
    if len(lost) == len(request.names):
        raise UnavailableError(f"no part of an index can be made here: {said(lost)}")
    return lost


def said(lost: dict[str, str]) -> str:
    """Parts that were left out, each with its reason.

    >>> said({"bm25": "needs Java 21", "impact": "needs weights"})
    'bm25 (needs Java 21) and impact (needs weights)'
    """
    return " and ".join(f"{part} ({reason})" for part, reason in lost.items())
