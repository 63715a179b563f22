"""The plan of a spec: the steps, as argv of our own commands. The runner runs it and the page prints it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from rnnreranker.data.names import BUILT_IN
from rnnreranker.regress.spec import Condition, QuerySet, Spec
from rnnreranker.settings import flag


@dataclass(frozen=True)
class Step:
    """One command: `python -m rnnreranker.<module> <argv>`."""

    module: str  # index, search
    argv: tuple[str, ...]
    output: Path  # the folder or run file it makes
    condition: str = ""  # the condition whose run it makes, "" for an index
    query_set: str = ""

    def command(self) -> str:
        """The line to paste into a shell."""
        return shlex.join(["python", "-m", f"rnnreranker.{self.module}", *self.argv])


@dataclass(frozen=True)
class Plan:
    """The steps of a spec, in an order in which they can be run; all files lie in one folder."""

    spec: Spec
    folder: Path
    steps: tuple[Step, ...]

    def run_file(self, condition: str, query_set: str) -> Path:
        """Where the run of a condition on a query set is written."""
        return self.folder / f"{condition}.{query_set}.txt"

    def evaluation(self, query_set: QuerySet) -> str:
        """The line that prints the measured values of all runs on a query set."""
        runs = [str(step.output) for step in self.steps if step.query_set == query_set.id]
        judged = ["--qrels", query_set.qrels, "--protocol", query_set.protocol]
        measures = ["--measures", " ".join(self.spec.measures)]
        return shlex.join(["python", "-m", "rnnreranker.evaluate", *runs, *judged, *measures])


def make_plan(spec: Spec, folder: Path, only: str | None = None) -> Plan:
    """The plan of a spec with all files under `folder`.

    Args:
        spec: what to reproduce.
        folder: where the index and the runs go; relative folders give a page that can be pasted anywhere.
        only: the id of one condition; the steps are those it needs.

    Raises:
        InputError: `only` names no condition.
    """
    chosen = spec.conditions if only is None else _needed(spec, only)
    steps = list(_index_steps(spec, folder, chosen))
    plan = Plan(spec, folder, ())
    for query_set in spec.query_sets:
        for condition in chosen:
            argv = ["--index", index_name(spec, folder), "--topics", query_set.topics]
            if condition.retrieve is not None:
                argv += ["--retriever", condition.retrieve, "--rerank", "none"]
            else:
                argv += ["--run", str(plan.run_file(str(condition.base), query_set.id))]
                argv += ["--rerank", str(condition.rerank)]
                argv += ["--preset", condition.preset] if condition.preset else []
                argv += [word for name, value in condition.params.items() for word in (flag(name), str(value))]
            output = plan.run_file(condition.id, query_set.id)
            argv += ["--hits", str(spec.hits), "--tag", condition.id, "--output", str(output)]
            steps.append(Step("search", tuple(argv), output, condition.id, query_set.id))
    return Plan(spec, folder, tuple(steps))


def index_name(spec: Spec, folder: Path) -> str:
    """What `--index` is given: the built-in name, or the folder of the index step."""
    return spec.documents if spec.documents in BUILT_IN else str(folder / "index")


def _index_steps(spec: Spec, folder: Path, conditions: tuple[Condition, ...]) -> list[Step]:
    """Dense vectors first, then BM25 where a condition retrieves with it: without Java the first still stands."""
    if spec.documents in BUILT_IN:
        return []
    output = folder / "index"
    argv = ("--documents", spec.documents, "--output", str(output), "--encoder", spec.encoder)
    steps = [Step("index", argv, output)]
    if any(condition.retrieve in ("bm25", "hybrid") for condition in conditions):
        steps.append(Step("index", (*argv, "--bm25"), output / "bm25"))
    return steps


def _needed(spec: Spec, only: str) -> tuple[Condition, ...]:
    chain = [spec.condition(only)]
    while chain[0].base is not None:
        chain.insert(0, spec.condition(chain[0].base))
    return tuple(chain)
