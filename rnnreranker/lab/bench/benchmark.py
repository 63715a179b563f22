"""`bench` and the command: the parts that are asked for, measured on this machine."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import nearest, refuse, require
from rnnreranker.base.process.machine import processor
from rnnreranker.base.request import Request, asked
from rnnreranker.lab.bench.parts import ASKED, DEVICES, GPU, MADE, PARTS, measure
from rnnreranker.lab.bench.sizes import FULL, QUICK, QUICK_SECONDS


@dataclass(frozen=True)
class BenchRequest(Request):
    """What is to be measured: the arguments of `bench`, and flags of the command.

    Attributes:
        only: parts, see `PARTS`; empty = all but those that are measured only where they are named.
        quick: small sizes; what would begin after `QUICK_SECONDS` is left out, unless parts are named.
        pairs: of measurements; None = as the sizes say.
        documents: sizes of the graphs of the part graph-size; empty = as the sizes say.
        device: where the parts gpu and device-encoding compute; None = cuda, of the latter alone cpu.
    """

    only: Sequence[str] = ()
    quick: bool = False
    pairs: int | None = None
    documents: Sequence[int] = ()
    device: str | None = None

    @property
    def parts(self) -> list[str]:
        """The names of the parts that are measured."""
        return list(self.only) or [name for name in PARTS if name not in ASKED]

    @property
    def name(self) -> str:
        """Of the record: a part or a quick look does not replace the whole."""
        return "-".join(["performance", *(["quick"] if self.quick else []), *self.only])


def bench(only: Sequence[str] = (), **others: Any) -> dict[str, Any]:
    """What is measured on this machine, as `python -m rnnreranker.bench`.

    Args:
        only, others: as of `BenchRequest`.

    Returns:
        processor, load, quick, sizes, and parts: name → title, note and rows, see docs/performance.md.

    Raises:
        InputError: parts that there are not, numbers below 1, arguments that no part that is measured reads, a device
            that is not here.
        MissingDependencyError, UnavailableError: what a part that was named needs.
    """
    request = asked(BenchRequest, {"only": [only] if isinstance(only, str) else only, **others})
    check(request)
    return measured(request)


def check(request: BenchRequest) -> None:
    """Refuse what can be seen to fail, before any work.

    Raises:
        InputError: see `bench`.
    """
    unknown = [name for name in request.only if name not in PARTS]
    refuse(
        *((True, f"{argument('only', name)}: no such part; {nearest(name, PARTS)}") for name in unknown),
        *(
            (
                getattr(request, name) and not set(of) & set(request.parts),
                f"{argument(name)}: is for the part {of[0]}, which is not measured; expected {argument('only', of[0])}",
            )
            for name, of in (("device", (GPU, DEVICES)), ("documents", (MADE,)))
        ),
        (
            request.pairs is not None and request.pairs < 1,
            f"{argument('pairs', request.pairs)}: expected an integer >= 1",
        ),
        *((number < 1, f"{argument('documents', number)}: expected an integer >= 1") for number in request.documents),
    )


def measured(request: BenchRequest) -> dict[str, Any]:
    """What a request that was checked asks for; see `bench`."""
    sizes = QUICK if request.quick else FULL
    if request.pairs:
        sizes = dataclasses.replace(sizes, pairs=request.pairs)
    if asking := [name for name in (GPU, DEVICES) if name in request.parts]:
        require("torch", f"{argument('only', asking[0])}", "torch")
        from rnnreranker.base.device import one_device

        device = request.device or ("cuda" if GPU in asking else "cpu")
        one_device(device)  # before anything is measured
        sizes = dataclasses.replace(sizes, device=device)
    if request.documents:
        sizes = dataclasses.replace(sizes, graphs=tuple(request.documents))
    about = {
        "processor": processor(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,  # before our own work
        "quick": request.quick,
        "sizes": dataclasses.asdict(sizes),
    }
    seconds = QUICK_SECONDS if request.quick and not request.only else None
    return about | {"parts": measure(request.parts, sizes, seconds)}
