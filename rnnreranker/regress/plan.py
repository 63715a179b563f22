"""The plan of a spec: every command from documents to measures; the runner runs it and pages print it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rnnreranker.data.names import BUILT_IN
from rnnreranker.method import find
from rnnreranker.regress.methods import PARTS, arguments, flags_of, option_words, reranking_words
from rnnreranker.regress.needs import needs_of, needs_text
from rnnreranker.regress.spec import MODULES, Condition, Index, Model, QuerySet, Spec, Use, Work, planned
from rnnreranker.settings import flag, words

# part that is added to an index → its folder there
ADDED = {"bm25": "bm25", "impact": "impacts", "neighbours": "neighbours"}
PASTE_FOLDER = Path("runs")  # where printed commands put their files


@dataclass(frozen=True)
class Step:
    """One command: `python -m rnnreranker.<module> <argv>`; what it makes, from which files of other steps."""

    module: str
    argv: tuple[str, ...]
    output: Path
    inputs: tuple[Path, ...] = ()
    needs: dict[str, Any] = field(default_factory=dict)

    def command(self) -> str:
        """The line to paste into a shell."""
        return shlex.join(["python", "-m", f"rnnreranker.{self.module}", *self.argv])

    def value(self, flag: str) -> str:
        """What follows a flag, or an empty text."""
        return self.argv[self.argv.index(flag) + 1] if flag in self.argv else ""


@dataclass(frozen=True)
class Plan:
    """The steps of conditions on query sets, in an order in which they can be taken; each once."""

    spec: Spec
    folder: Path
    conditions: tuple[Condition, ...]
    query_sets: tuple[QuerySet, ...]
    works: tuple[Work, ...]
    steps: tuple[Step, ...]
    published: Mapping[tuple[str, str], Path] = field(default_factory=dict)  # query set, condition: file

    def run_files(self, condition: Condition, query_set: QuerySet) -> list[Path]:
        """The run files of a condition: one, or one for each context of a sweep; none where it is not measured."""
        if query_set.id not in (condition.query_sets or (query_set.id,)):
            return []
        given = self.published.get((query_set.id, condition.id))
        return [given] if given else run_files(self.spec, self.folder, condition, query_set)

    def given(self) -> dict[Path, tuple[Condition, QuerySet]]:
        """The files of published runs, which no step makes."""
        pairs = [(entry, one) for one in self.query_sets for entry in self.conditions if entry.published]
        return {path: (entry, one) for entry, one in pairs for path in self.run_files(entry, one)}

    def outputs(self) -> list[Path]:
        """All that the plan is for: the run files of its conditions and the records of its works."""
        runs = [path for one in self.query_sets for entry in self.conditions for path in self.run_files(entry, one)]
        return [*runs, *(work_file(self.spec, self.folder, work) for work in self.works)]

    def evaluations(self) -> list[str]:
        """The lines that print the measured values of all runs, one for each query set and protocol."""
        made = {*(step.output for step in self.steps), *self.given()}
        lines = []
        for query_set in self.query_sets:
            paths = [path for condition in self.conditions for path in self.run_files(condition, query_set)]
            runs = [str(path) for path in paths if path in made]  # nothing makes the runs of what is planned
            measures = " ".join(self.spec.measures_of(query_set))
            for protocol in query_set.protocols if runs else ():
                judged = ["--qrels", query_set.qrels, "--protocol", protocol, "--measures", measures]
                lines.append(shlex.join(["python", "-m", "rnnreranker.evaluate", *runs, *judged]))
        return lines

    def lines(self) -> list[str]:
        """The complete plan in lines to paste into a shell: needs, commands, what is planned; pages show the same."""
        sets = [entry.title for entry in self.query_sets if entry.title] if len(self.query_sets) == 1 else []
        lines = [f"# {(sets or [self.spec.title])[0]}", f"# needs in all: {needs_text(self.needs()) or 'nothing'}"]
        made = (step.output for step in self.steps if step.output.name not in ADDED.values())
        for folder in dict.fromkeys(output.parent for output in made):
            lines.append(shlex.join(["mkdir", "-p", str(folder)]))
        lines += [f"# {path}: {entry.title}, {one.id}: not made here" for path, (entry, one) in self.given().items()]
        for number, step in enumerate(self.steps, 1):
            needs = f": {needs_text(step.needs)}" if step.needs else ""
            lines += [f"# {number} of {len(self.steps)}{needs}", step.command()]
        lines += self.evaluations()
        lacking = {entry.id: planned(self.spec, entry) for entry in self.conditions}
        return [*lines, *(f"# {name}: planned: {text}" for name, text in lacking.items() if text)]

    def needs(self) -> dict[str, Any]:
        """What the plan needs in all."""
        return needs_of([self.spec.needs, *(entry.needs for entry in self.query_sets)] + [s.needs for s in self.steps])


def run_files(spec: Spec, folder: Path, condition: Condition, query_set: QuerySet) -> list[Path]:
    """Where the runs of a condition on a query set are written."""
    return [folder / spec.name / f"{name}.{query_set.id}.txt" for name in condition.run_names]


def work_file(spec: Spec, folder: Path, work: Work) -> Path:
    """Where the records of a study, a tuning, … are written."""
    return folder / spec.name / f"{work.id}.json"


def index_name(index: Index, folder: Path) -> str:
    """What `--index` is given: a prebuilt or built-in name, or the folder of the index step."""
    if index.prebuilt or index.documents in BUILT_IN:
        return index.prebuilt or index.documents
    return str(folder / "indexes" / f"{_word(index.documents)}.{index.id}")


def make_plan(
    spec: Spec,
    folder: Path = PASTE_FOLDER,
    conditions: Sequence[Condition] | None = None,
    query_sets: Sequence[QuerySet] | None = None,
    works: Sequence[Work] = (),
    published: Mapping[tuple[str, str], Path] | None = None,
) -> Plan:
    """The plan of these conditions and those they need, all files under `folder`.

    Indexes and models are shared by specs: they go to `folder/indexes` and `folder/models`.

    Args:
        spec: what to reproduce.
        folder: relative ones give commands that can be pasted anywhere.
        conditions: those asked for; None = all.
        query_sets: those asked for; None = all.
        works: studies and the like.
        published: query set and condition → the published run that it is; of others the file is looked for where
            its own would be.
    """
    query_sets = spec.query_sets if query_sets is None else query_sets
    conditions = spec.conditions if conditions is None else conditions
    maker = _Maker(spec, folder, published or {})
    for query_set in query_sets:
        for condition in conditions:
            if query_set.id in (condition.query_sets or (query_set.id,)):
                maker.condition(condition, query_set)
    for work in works:
        maker.work(work)
    steps = tuple(maker.steps)
    return Plan(spec, folder, tuple(conditions), tuple(query_sets), tuple(works), steps, published or {})


class _Maker:
    def __init__(self, spec: Spec, folder: Path, published: Mapping[tuple[str, str], Path]) -> None:
        self.spec = spec
        self.folder = folder
        self.published = published
        self.steps: list[Step] = []
        self._there: set[Path] = set()
        self._read: set[str] = set()  # prebuilt indexes that an earlier step reads

    def _add(self, module: str, argv: list[str], output: Path, inputs: list[Path], needs: dict[str, Any]) -> None:
        if output not in self._there:
            self._there.add(output)
            self.steps.append(Step(module, tuple(argv), output, tuple(inputs), needs))

    def index(self, index: Index, part: str = "") -> tuple[str, list[Path]]:
        """What `--index` is given, and the files that must be made before.

        Its first part makes it, others are added for who reads them: without Java or weights the first still stands.
        """
        name = index_name(index, self.folder)
        if index.prebuilt or index.documents in BUILT_IN:
            return name, []
        output = Path(name)
        argv = ["--documents", index.documents, "--output", name]
        first = next(own for own in ("dense", *ADDED) if own in index.parts)
        dense = words(index.parts.get("dense") or {})
        bm25 = [*dense, "--bm25"] if dense else ["--no-dense", "--bm25"]
        impact = words({f"impact_{key}": value for key, value in (index.parts.get("impact") or {}).items()})
        graph = words(index.parts.get("neighbours") or {})
        flags = {"dense": dense, "bm25": bm25, "impact": ["--parts", "impact", *impact]}
        flags["neighbours"] = ["--parts", "neighbours", *graph]
        made = output
        self._add("index", [*argv, *flags[first]], output, [], index.needs)
        if part in ADDED and part != first:
            made = output / ADDED[part]
            self._add("index", [*argv, *flags[part]], made, [output], {})
        return name, [made]

    def first_needs(self, index: Index) -> dict[str, Any]:
        """What the step that reads a prebuilt index first needs for it; others nothing."""
        if not index.prebuilt or index.prebuilt in self._read:
            return {}
        self._read.add(index.prebuilt)
        return index.needs

    def model(self, model: Model) -> Path:
        """The folder of a trained encoder, after the steps that make it."""
        output = self.folder / "models" / model.id
        if output in self._there:
            return output
        index = self.spec.index(model.index)
        name, index_files = self.index(index)
        run = self.candidates(model, model.topics)
        labels = self.folder / "models" / f"{model.id}.parquet"
        argv = ["--run", str(run), "--index", name, "--topics", model.topics, "--qrels", model.qrels]
        argv += [*_encoder(index), "--method", model.labels.name, *arguments(model.labels), "--output", str(labels)]
        self._add("labels", argv, labels, [run, *index_files], self.first_needs(index))

        start = self.model(self.spec.model(model.start)) if model.start else None
        argv = ["--labels", str(labels), "--index", name, "--topics", model.topics]
        inputs = [labels, *index_files, *([start] if start else [])]
        if model.validation:
            validation = self.candidates(model, model.validation["topics"])
            inputs.append(validation)
            argv += ["--validation-run", str(validation)]
            argv += [word for key in ("topics", "qrels") for word in (f"--validation-{key}", model.validation[key])]
        argv += ["--encoder", str(start)] if start else _encoder(index)
        self._add("train", [*argv, *arguments(model.train), "--output", str(output)], output, inputs, model.needs)
        return output

    def candidates(self, model: Model, topics: str) -> Path:
        """The run that a model's candidates for some topics are taken from."""
        index = self.spec.index(model.candidates or model.index)
        name, index_files = self._index_for(model.first, index)
        settings = "".join(f".{key}-{value}" for key, value in model.first.params.items())
        file = f"{_word(topics)}.{_word(index.prebuilt or index.documents)}.{index.id}{settings}.txt"
        run = self.folder / "models" / file
        argv = ["--index", name, "--topics", topics, *self._retrieval(model.first, _encoder(index))]
        self._add("search", [*argv, "--hits", "1000", "--output", str(run)], run, index_files, self.first_needs(index))
        return run

    def _index_for(self, use: Use, index: Index) -> tuple[str, list[Path]]:
        parts = {PARTS.get(need, "") for need in find("retriever", use.name).needs}
        return self.index(index, next(iter(parts & set(ADDED)), ""))

    def _index_of(self, condition: Condition, index: Index) -> tuple[str, list[Path]]:
        """The index with what a condition reads of it."""
        if condition.retrieve:
            return self._index_for(condition.retrieve, index)
        return self.index(index, "neighbours" if condition.expand else "")

    def _retrieval(self, use: Use, encoder: list[str]) -> list[str]:
        needs = find("retriever", use.name).needs
        queries = encoder if "query vectors" in needs else []
        return [*queries, "--retriever", use.name, "--rerank", "none", *arguments(use)]

    def condition(self, condition: Condition, query_set: QuerySet) -> list[Path]:
        """The run files of a condition on a query set, after the steps that make them; none for what is planned."""
        if planned(self.spec, condition):
            return []
        if given := self.published.get((query_set.id, condition.id)):
            return [given]
        paths = run_files(self.spec, self.folder, condition, query_set)
        if condition.published or set(paths) <= self._there:
            return paths
        last = ["--hits", str(self.spec.hits), "--tag", condition.id]
        before = [self.condition(self.spec.condition(name), query_set)[0] for name in condition.of]
        if condition.fuse:
            argv = [*map(str, before), "--method", condition.fuse.name, *words(condition.fuse.params), *last]
            self._add("fuse", [*argv, "--output", str(paths[0])], paths[0], before, {})
            return paths
        index = self.spec.index(condition.index)
        name, inputs = self._index_of(condition, index)
        encoder = _encoder(index)
        if condition.model:
            trained = self.model(self.spec.model(condition.model))
            encoder, inputs = ["--encoder", str(trained)], [*inputs, trained]
        argv = ["--index", name, "--topics", query_set.topics]
        if condition.retrieve:
            argv += self._retrieval(condition.retrieve, encoder)
            argv += ["--prf", condition.prf.name, *arguments(condition.prf)] if condition.prf else []
        elif condition.expand:
            argv += [*encoder, "--run", str(before[0]), "--expand", condition.expand.name, "--rerank", "none"]
            argv += arguments(condition.expand)
        else:
            argv += [*encoder, "--run", str(before[0]), *reranking_words(condition.rerank)]
        for output, context in zip(paths, condition.contexts or [None], strict=True):
            swept = ["--context", str(context)] if context is not None else []
            words_ = [*argv, *swept, *last, "--output", str(output)]
            self._add("search", words_, output, [*inputs, *before], self.first_needs(index))
        return paths

    def work(self, work: Work) -> None:
        """The step of a study, a tuning, …: its options in flags, with the files of the entries that they name."""
        options, inputs, argv = dict(work.options), [], []
        module = MODULES[work.kind]
        if "query_set" in options:
            query_set = self.spec.query_set(options.pop("query_set"))
            if "of" in options:
                paths = self.condition(self.spec.condition(options.pop("of")), query_set)
                argv, inputs = ["--run", str(paths[0])], [*paths[:1]]
            own = {"topics": query_set.topics, "qrels": query_set.qrels, "protocol": query_set.protocols[0]}
            options = {name: value for name, value in own.items() if flag(name) in flags_of(module)} | options
        if "index" in options and any(entry.id == options["index"] for entry in self.spec.indexes):
            name, files = self.index(self.spec.index(options.pop("index")))
            argv, inputs = ["--index", name, *argv], [*inputs, *files]
        output = work_file(self.spec, self.folder, work)
        argv += [word for key, value in options.items() for word in option_words(key, value)]
        argv += ["--record" if "--record" in flags_of(module) else "--output", str(output)]
        self._add(module, argv, output, inputs, work.needs)


def _word(name: str) -> str:
    """The name of a data set or file as part of a file name."""
    return name.replace("/", "-").replace(":", "-").strip("-.")


def _encoder(index: Index) -> list[str]:
    """How queries are encoded; nothing where it is the encoder that commands take without being told."""
    dense = index.parts.get("dense") or {}
    found = {name: value for name, value in dense.items() if flag(name) in flags_of("search")}
    return words(found) if found != {"encoder": "minilm"} else []
