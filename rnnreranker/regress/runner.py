"""The runner: takes the steps of a plan, each once, and measures what they made."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rnnreranker.command import say
from rnnreranker.data.names import BUILT_IN
from rnnreranker.errors import MissingDependencyError, RnnrerankerError, UnavailableError
from rnnreranker.files import cache_home, fingerprint, read_text
from rnnreranker.index.build import describe
from rnnreranker.record import commit, machine, versions
from rnnreranker.regress.measure import measure
from rnnreranker.regress.plan import Plan, Step, make_plan
from rnnreranker.regress.results import Result
from rnnreranker.regress.spec import Spec


def run_spec(spec: Spec, folder: Path | None = None, only: str | None = None) -> Result:
    """What a spec measures here and now.

    Args:
        spec: what to run.
        folder: where index and runs are kept; default: in the cache folder, under the name of the spec.
        only: the id of one condition; those it needs are run with it.

    Returns:
        The result; conditions that cannot be run here are in `left_out` with the reason.

    Raises:
        UnavailableError: no condition can be run: documents, topics or judgements cannot be had, or the collection has
            another number of documents than the spec states.
        InputError: `only` names no condition.
    """
    started = time.perf_counter()
    folder = folder if folder is not None else cache_home() / "regress" / spec.name
    plan = make_plan(spec, folder, only)
    documents = _count(spec, folder)
    folder.mkdir(parents=True, exist_ok=True)
    left_out = _take_steps(plan)
    done = {step.condition for step in plan.steps if step.condition} - left_out.keys()
    if not done:
        reasons = "; ".join(dict.fromkeys(left_out.values()))
        raise UnavailableError(f"{spec.name}: no condition can be run here ({reasons})")

    measured = {query_set.id: measure(plan, query_set, done) for query_set in spec.query_sets}
    return Result(
        fingerprint=_fingerprint(spec, folder),
        documents=documents,
        commit=commit(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine(),
        versions=versions(),
        values={name: entry.values for name, entry in measured.items()},
        differences={name: entry.differences for name, entry in measured.items()},
        topics={name: entry.topics for name, entry in measured.items()},
        unjudgeable={name: entry.unjudgeable for name, entry in measured.items()},
        judged={name: entry.judged for name, entry in measured.items()},
        left_out=left_out,
        seconds=round(time.perf_counter() - started, 1),
    )


def _count(spec: Spec, folder: Path) -> int:
    """The number of documents, which must be what the spec states: a sample never passes for the collection."""
    from rnnreranker.data.documents import load_documents

    described = {} if spec.documents in BUILT_IN else describe(folder / "index")
    count = int(described["count"]) if "count" in described else sum(1 for _ in load_documents(spec.documents))
    fewest, most = spec.count
    if not fewest <= count <= most:
        stated = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
        raise UnavailableError(
            f"{spec.name}: {spec.documents} has {count:,} documents here, the spec is for {stated}: another collection"
        )
    return count


def _take_steps(plan: Plan) -> dict[str, str]:
    """Run every step whose output is not there from the same inputs; condition id: why it was left out.

    Raises:
        UnavailableError, InputError: the vectors that all conditions need cannot be made.
    """
    left_out: dict[str, str] = {}
    no_bm25 = ""  # why there is no BM25 index
    conditions = {condition.id: condition for condition in plan.spec.conditions}
    for number, step in enumerate(plan.steps, 1):
        condition = conditions.get(step.condition)
        if condition and condition.base in left_out:
            left_out[condition.id] = f"skipped: its base {condition.base} was left out"
            continue
        if condition and no_bm25 and condition.retrieve in ("bm25", "hybrid"):
            left_out[condition.id] = no_bm25
            continue
        try:
            if _is_current(plan, step):
                continue
            say(f"[{number}/{len(plan.steps)}] {step.command()}")
            _main_of(step.module)(step.argv)
            _mark_current(plan, step)
        except RnnrerankerError as error:
            if not condition and "--bm25" not in step.argv:
                raise
            kind = "skipped" if isinstance(error, (UnavailableError, MissingDependencyError)) else "error"
            say(f"{kind}: {error}")
            if condition:
                left_out[condition.id] = f"{kind}: {error}"
            else:
                no_bm25 = f"{kind}: {error}"
    return left_out


def _main_of(module: str) -> Callable[[Sequence[str]], int]:
    if module == "index":
        from rnnreranker.index.__main__ import main
    else:
        from rnnreranker.search.__main__ import main
    return main


def _is_current(plan: Plan, step: Step) -> bool:
    """Whether a run file is there and was made by this code from the same inputs; an index looks after itself."""
    stamp = _stamp(step)
    return step.condition != "" and step.output.is_file() and stamp.is_file() and read_text(stamp) == _key(plan, step)


def _mark_current(plan: Plan, step: Step) -> None:
    if step.condition:
        _stamp(step).write_text(_key(plan, step), encoding="utf-8")


def _stamp(step: Step) -> Path:
    return step.output.with_name(f".{step.output.name}.inputs")


def _key(plan: Plan, step: Step) -> str:
    """Names everything that a run depends on: the command, the documents, the topics, the base run, the code."""
    from rnnreranker.data.topics import load_topics

    topics = load_topics(_after(step.argv, "--topics"))
    base = Path(_after(step.argv, "--run")) if "--run" in step.argv else None
    base_content = base.read_bytes() if base is not None and base.is_file() else b""
    return fingerprint(list(step.argv), _collection(plan.spec, plan.folder), topics, base_content, _code())


def _after(argv: Sequence[str], word: str) -> str:
    return argv[argv.index(word) + 1]


def _collection(spec: Spec, folder: Path) -> str:
    """The fingerprint of documents and encoder."""
    if spec.documents in BUILT_IN:
        from rnnreranker.data import pydoc

        return pydoc.fingerprint()
    return str(describe(folder / "index").get("fingerprint", ""))


def _code() -> str:
    """The fingerprint of the package's own source."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _fingerprint(spec: Spec, folder: Path) -> str:
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.data.topics import load_topics

    judged = [
        [load_topics(query_set.topics), sorted(map(list, load_qrels(query_set.qrels).itertuples(index=False)))]
        for query_set in spec.query_sets
    ]
    return fingerprint(_collection(spec, folder), spec.encoder, judged)
