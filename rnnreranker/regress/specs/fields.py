"""The types of fields of specs: each checks what is written there, and says what was expected."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, ValidationInfo

from rnnreranker.base.chosen_method import choose
from rnnreranker.base.errors import UnavailableError, nearest, refuse
from rnnreranker.base.written_form import Written
from rnnreranker.data import local
from rnnreranker.data.names import BUILT_IN_TOPICS, is_path, left_out
from rnnreranker.evaluate.measures import parse_measures
from rnnreranker.evaluate.protocols import PROTOCOLS
from rnnreranker.labels.negatives.make import choose_filter
from rnnreranker.regress.specs.methods import check_labels, use_with_folders
from rnnreranker.runs.fuse import fusion
from rnnreranker.search.request import passages
from rnnreranker.train.request import training_of

TEXTS = ("agreement", "files")
UNITS = {  # of sizes that steps need
    "download_gb": "GB to download",
    "disk_gb": "GB of disk",
    "ram_gb": "GB of memory",
    "gpu_hours": "hours of a GPU",
    "hours": "hours of computing",
}


def _use(check: Callable[[Written], Any]) -> PlainValidator:
    """Reads a method with its settings, and checks it as its command takes it."""

    def read(value: Any) -> Written:
        use = Written.read(value)
        check(use_with_folders(use))
        return use

    return PlainValidator(read)


def listed(value: Any) -> tuple[Any, ...]:
    """A list as a tuple; an empty one of null."""
    if not isinstance(value, list | tuple | None):
        raise ValueError(f"{value!r}; expected a list with at least one entry")
    return tuple(value or ())


def _measure(name: str) -> str:
    parse_measures([name])
    return name


def _protocol(name: str) -> str:
    refuse((name not in PROTOCOLS, f"protocol {name}; {nearest(name, PROTOCOLS)}"))
    return name


def _data(kind: str) -> AfterValidator:
    """Looks up the name of documents, topics or judgements; files are looked for when a step needs them."""

    def check(name: str, info: ValidationInfo) -> str:
        if name and (info.context or {}).get("data"):
            _look_up(name, kind)
        return name

    return AfterValidator(check)


def _look_up(name: str, kind: str) -> None:
    from rnnreranker.data import irds

    name, others = left_out(name)
    for other in others:
        _look_up(other, "topics")
    if is_path(name) or name in BUILT_IN_TOPICS:
        return
    try:
        if local.source(name, kind) == name:
            irds.load(name)
    except UnavailableError:
        return  # known, and not here: the step that needs it says so


def _needs(needs: dict[str, Any]) -> dict[str, Any]:
    for key, value in needs.items():
        number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        refuse(
            (key not in (*UNITS, *TEXTS), f"needs {key}; {nearest(str(key), (*UNITS, *TEXTS))}"),
            (key in UNITS and not number, f"needs {key}: {value!r}; expected a number >= 0"),
            (key in TEXTS and not isinstance(value, str), f"needs {key}: {value!r}; expected a text"),
        )
    return needs


def _start(start: Any) -> Any:
    refuse((not isinstance(start, str | dict), f"start {start!r}: expected a name or {{model: ID}}"))
    return start


Positive = Annotated[int, Field(gt=0)]
Bounds = Annotated[  # fewest and most; a number is both
    tuple[Positive, Positive], BeforeValidator(lambda count: tuple(count if isinstance(count, list) else [count] * 2))
]
Protocol = Annotated[str, AfterValidator(_protocol)]
Start = Annotated[Any, AfterValidator(_start)]  # a name or {model: ID}
Names = Annotated[tuple[str, ...], BeforeValidator(listed)]
Measures = Annotated[tuple[Annotated[str, AfterValidator(_measure)], ...], BeforeValidator(listed)]
Protocols = Annotated[tuple[Protocol, ...], BeforeValidator(listed)]
Topics = Annotated[str, _data("topics")]
Qrels = Annotated[str, _data("qrels")]
Documents = Annotated[str, _data("documents")]
Needs = Annotated[dict[str, Any], AfterValidator(_needs)]
Retriever = Annotated[Written, _use(partial(choose, "retriever"))]
Reranker = Annotated[Written, _use(partial(choose, "reranker"))]
Feedback = Annotated[Written, _use(partial(choose, "feedback"))]
Expander = Annotated[Written, _use(partial(choose, "expander"))]
Fusion = Annotated[Written, _use(lambda use: fusion(use, 0, "fuse"))]
Aggregation = Annotated[Written, _use(passages)]
Labels = Annotated[Written, _use(check_labels)]
Filter = Annotated[Written, _use(choose_filter)]
Training = Annotated[Written, _use(training_of)]


def needs_of(several: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Needs together: sizes and hours added up (memory: the most), agreements and files listed once."""
    total: dict[str, Any] = {}
    for needs in several:
        for key, value in needs.items():
            if isinstance(value, str):
                texts = total.setdefault(key, "")
                total[key] = texts if value in texts else "; ".join(filter(None, (texts, value)))
            else:
                together = max if key == "ram_gb" else operator.add
                total[key] = together(total.get(key, 0), value)
    return total


def needs_text(needs: Mapping[str, Any]) -> str:
    """Needs in words.

    >>> needs_text({"disk_gb": 2, "hours": 1})
    '2 GB of disk, 1 hour of computing'
    """
    texts = [f"{value:g} {UNITS[key]}" if key in UNITS else str(value) for key, value in needs.items()]
    return ", ".join(text.replace("hours", "hour", 1) if text.startswith("1 hours") else text for text in texts)
