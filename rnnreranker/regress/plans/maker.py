"""The steps of conditions, models and studies, with those of the indexes, candidates and labels they need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import refuse
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import choose, find, names
from rnnreranker.base.settings import Written
from rnnreranker.encode.params import QUERY_SIDE
from rnnreranker.index.request import USUAL, settings_with_flags
from rnnreranker.parts.base import part, parts_of
from rnnreranker.regress.plans.plan import PASTE_FOLDER, Plan, Step, built_in, index_name, word_of
from rnnreranker.regress.specs.entries import (
    MODEL_OPTIONS,
    Condition,
    IndexEntry,
    Model,
    Needs,
    QuerySet,
    Spec,
    Work,
    choose_labels,
    flags_of,
    has_context,
    needs_of,
    parts_read,
    spec_part,
    with_folders,
)

LONGEST = 60  # characters of settings in a file name
Asked = dict[str, Any]  # of a command, as `Step.request`; None and "" are left out


class Maker:
    """The steps of a plan, each output once; what a request names and an earlier step makes is an input of its step."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.spec = plan.spec
        self.models = plan.folder / "models"
        self.steps: dict[Path, Step] = {}
        self.vectors: dict[str, Path] = {}  # request for an index with vectors, less its output → the first such index
        self.given = {*plan.published.values(), *plan.given()}
        # prebuilt index that no step reads yet → its needs
        self.downloads = {one.prebuilt: one.needs for one in reversed(self.spec.indexes.values()) if one.prebuilt}

    def made(self) -> list[Step]:
        """All steps, each after those that make its inputs."""
        for _, condition, query_set in self.plan.runs().values():
            self.condition(condition, query_set)
        for work in self.plan.works:
            self.work(work)
        return list(self.steps.values())

    def condition(self, condition: Condition, query_set: QuerySet) -> Path:
        """The first run file of a condition, after the steps that make all."""
        first, *others = self.plan.run_files(condition, query_set)
        if not condition.ways or first in self.given or self.steps.keys() >= {first, *others}:
            return first
        last = {"hits": self.spec.hits, "tag": condition.id}
        needs = condition.needs.get(query_set.id, {})
        before = [self.condition(self.spec.conditions[name], query_set) for name in condition.of]
        if condition.fuse or condition.aggregate:
            asked: Asked = {"runs": before, "method": condition.fuse, "aggregate": condition.aggregate}
            return self._add("fuse", asked | last, first, needs)
        index = self.spec.indexes[condition.index]
        parts = self._parts(index, condition.id, set().union(*(parts_read(*one) for one in condition.uses())))
        asked = self._index(index) | {"topics": query_set.topics, "remove_query": query_set.remove_query or None}
        encoder = {"encoder": self.model(condition.model)} if condition.model else self._encoder(index)
        if condition.retrieve:
            asked |= self._retrieval(condition.retrieve, encoder) | {"prf": condition.prf}
        else:
            on_gpu = any(find("reranker", use.name).takes_device for use in condition.rerank)
            asked |= encoder | {"run": before[0]} | _device(needs if on_gpu else {})
            asked |= {"expand": condition.expand, "rerank": "none"} if condition.expand else {}
        uses = [with_folders(use, self.model) for use in condition.rerank]
        for output, context in zip((first, *others), condition.contexts or [0], strict=True):
            swept = {"context": context} if context else {}
            own = [replace(use, params=use.params | swept) if has_context(use) else use for use in uses]
            asked |= {"rerank": tuple(own)} if own else {}
            self._add("search", asked | last, output, needs, parts)
        return first

    def work(self, work: Work) -> None:
        """The step of a study, a tuning, …: its options as flags, with files for entries."""
        flags, asked, parts = flags_of(work.module), Asked(), list[Path]()
        options = {key: "none" if value is None else value for key, value in work.options.items()}
        if query_set := self.spec.query_sets.get(options.pop("query_set", "")):
            if "of" in options:
                asked["run"] = self.condition(self.spec.conditions[options.pop("of")], query_set)
            own = {"topics": query_set.topics, "qrels": query_set.qrels, "protocol": query_set.protocols[0]}
            options = {name: value for name, value in own.items() if name in flags} | options
        if index := self.spec.indexes.get(options.get("index", "")):
            del options["index"]
            parts = self._parts(index, work.id, index.parts)
            asked = self._index(index) | asked
        if beside := options.get("beside"):
            options["beside"] = [with_folders(one, self.model) for one in beside]
        options |= {key: with_folders(options[key], self.model) for key in MODEL_OPTIONS if key in options}
        output = self.plan.work_file(work)
        to = "record" if "record" in flags else "output"
        device = _device(work.needs if "device" in flags else {})
        self._add(work.module, asked | options | device | {to: output}, output, work.needs, parts)

    def _add(self, module: str, asked: Asked, output: Path, needs: Needs, others: Iterable[Path] = ()) -> Path:
        """The output of a step, added unless one makes it; a prebuilt index is a need of its first reader."""
        if output in self.steps:
            return output
        request = {name: value for name, value in asked.items() if value not in (None, "")}
        request |= {} if {"output", "record"} & {*request} else {"output": output}
        step = Step(module, request, output, disk=needs.get("disk_gb", 0))
        inputs = [*others, *(path for path in map(Path, step.names()) if path in self.steps or path in self.given)]
        both = needs_of([self.downloads.pop(step.value("index"), {}), needs])
        self.steps[output] = replace(step, inputs=tuple(dict.fromkeys(inputs)), needs=both)
        return output

    def _index(self, index: IndexEntry) -> Asked:
        return {"index": index_name(index, self.plan.folder)}

    def _parts(self, index: IndexEntry | None, reader: str, parts: Iterable[str] = ()) -> list[Path]:
        """The files of parts of an index, or of its first part, after the steps that make them.

        Raises:
            InputError: the index has no such part; names the condition, model or study that reads it.
        """
        lacking = sorted({*parts} - {*(index.parts if index else ())})
        said = f"index {index.id} has no part" if index else "give an `index` with the part"
        refuse((lacking, f"{self.spec.name}: {reader}: {said} {' and no part '.join(lacking)}"))
        if index is None or index.prebuilt or built_in(index):
            return []
        first, *others = [name for name in names("part") if name in index.parts]
        wanted = [name for name in others if name in {*parts}] or [first]
        return [self._part(index, name, first) for name in wanted]

    def _part(self, index: IndexEntry, name: str, first: str) -> Path:
        """The file of a part of an index, after its step.

        The first part makes the index, other steps add parts: without Java or weights the first can be made.
        """
        output, kind = Path(index_name(index, self.plan.folder)), part(name)
        made = output if name == first else output / (kind.folder or name)
        if made in self.steps:
            return made
        before = [] if name == first else [self._part(index, first, first)]
        own = dict(spec_part(name, index.parts[name], self.model).params)
        hints = [hint for of, hint in settings_with_flags() if of.name == name and hint.field.name in own]
        flags = {hint.flag: own.pop(hint.field.name) for hint in hints}
        asked = {"documents": index.documents, "fields": ",".join(index.text), "output": output}
        asked |= {"parts": None if name == USUAL and not own else Written(name, own)} | flags
        same = self.vectors.setdefault(str(asked | {"output": ""}), made) if name == first == USUAL else made
        asked |= {"from_index": same} if same != made else _device(index.needs if kind.encoder else {})
        origins = kind.origins(choose("part", spec_part(name, index.parts[name])).params) if before else ()
        of = [one for one in origins if one in index.parts]
        before += [self._part(index, one, first) for one in of[:1]]
        return self._add("index", asked, made, {} if before else index.needs, before)

    def _retrieval(self, use: Written, encoder: Asked) -> Asked:
        queries = encoder if "query vectors" in find("retriever", use.name).needs else {}
        return {**queries, "retriever": with_folders(use, self.model), "rerank": "none"}

    def _encoder(self, index: IndexEntry | None) -> Asked:
        """The request for the query encoder of an index; {} for the default."""
        its = index.parts.get(USUAL) if index else None
        form = Written.read(spec_part(USUAL, its, self.model).params.get("encoder", "minilm"))
        form = Written(form.name, {key: value for key, value in form.params.items() if key not in QUERY_SIDE})
        return {"encoder": form} if form != Written("minilm") else {}

    def model(self, name: str) -> Path:
        """The folder of a model, after the steps that make it."""
        model = self.spec.models[name]
        index = self.spec.indexes.get(model.index)
        documents = index.prebuilt or index.documents if index else model.documents
        output = self.models / word_of(model.topics or documents) / name  # equal names of two specs have other topics
        source: Asked = self._index(index) if index else {"documents": documents, "fields": ",".join(model.text)}
        parts = self._parts(index, name, [USUAL] if model.train.name == "query" else ())
        train = with_folders(model.train, self.model)
        asked: Asked = {"model": None if train == Written("query") else train}  # the default
        if model.labels:
            asked["labels"] = self._labels(model, output, source, index)
        start = {"encoder": with_folders(model.start, self.model)} if model.start else self._encoder(index)
        asked |= source | {"topics": model.topics}
        if model.validation:
            asked["validation_run"] = self._candidates(model, model.validation.topics)
            asked |= {"validation_topics": model.validation.topics, "validation_qrels": model.validation.qrels}
        return self._add("train", asked | start, output, model.needs, parts)

    def _candidates(self, model: Model, topics: str) -> Path:
        """The run with a model's candidates for some topics."""
        index = self.spec.indexes[model.candidates or model.index]
        parts = self._parts(index, model.id, parts_read("retriever", model.first))
        first = self._retrieval(model.first, self._encoder(index))
        asked = self._index(index) | {"topics": topics} | first | {"hits": 1000}
        of = f"{word_of(index.prebuilt or index.documents)}.{index.id}{_settings(first['retriever'])}"
        own = model.step_needs.get("candidates", {}) if topics == model.topics else {}
        return self._add("search", asked, self.models / f"{word_of(topics)}.{of}.txt", own, parts)

    def _labels(self, model: Model, folder: Path, source: Asked, index: IndexEntry | None) -> Path:
        """The labels of a model; models of texts share equal ones."""
        run = self._candidates(model, model.topics)
        use = with_folders(model.labels, self.model)
        labeler, method, options = choose_labels(use)
        parts = self._parts(index, model.id, parts_of(labeler.needs))
        judged = "" if model.qrels == model.topics else f".{word_of(model.qrels)}"
        made, encoder = run.with_name(f"{run.stem}{judged}{_settings(use)}.parquet"), Asked()
        if model.train.name == "query":
            made = folder.with_name(f"{model.id}.parquet")
            encoder = self._encoder(index) if labeler.source != "neighbours" else {}
        own = model.step_needs.get("labels", {})
        asked = {"run": run, **source, "topics": model.topics, "qrels": model.qrels, **encoder, "method": method}
        asked |= {**options, "output": made} | _device(own)
        return self._add("labels", asked, made, own, parts)


def make_plan(
    spec: Spec,
    folder: Path = PASTE_FOLDER,
    conditions: Iterable[Condition] | None = None,
    query_sets: Iterable[QuerySet] | None = None,
    works: Iterable[Work] = (),
    **more: Any,
) -> Plan:
    """The plan of conditions (None = all) and those they need, with all files under `folder`.

    more: `published` and `keep`, as in `Plan`.
    """
    chosen = spec.conditions.values() if conditions is None else conditions
    sets = spec.query_sets.values() if query_sets is None else query_sets
    plan = Plan(spec, folder, tuple(chosen), tuple(sets), tuple(works), **more)
    return replace(plan, steps=tuple(by_large_files(Maker(plan).made())))


def chosen_plan(spec: Spec, query_sets: Iterable[QuerySet], only: Sequence[str], folder: Path, **others: Any) -> Plan:
    """The plan of the conditions and works in `only` with those they need; by default all conditions, or all works.

    others: as in `make_plan`. Raises InputError if `only` names nothing in the spec.
    """
    works = [work for work in spec.works if work.id in only or not (only or spec.conditions)]
    waiting, wanted = {*only} - {work.id for work in works}, set[str]()
    while waiting:
        condition = spec.condition(waiting.pop())
        wanted.add(condition.id)
        waiting |= {*condition.of, condition.against} - {"", *wanted}
    conditions = [entry for name, entry in spec.conditions.items() if name in wanted or not only]
    return make_plan(spec, folder, conditions, query_sets, works, **others)


def by_large_files(steps: Sequence[Step]) -> list[Step]:
    """The steps in an order with the readers of a large file right behind it."""
    made, large = {step.output for step in steps}, {step.output for step in steps if step.large}
    waiting, ordered = list(steps), dict[Path, Step]()
    while waiting:
        readers = (one for one in waiting if large & {*one.inputs})
        step = next((one for one in readers if ordered.keys() >= made & {*one.inputs}), waiting[0])
        waiting.remove(step)
        ordered[step.output] = step
    return list(ordered.values())


def _device(needs: Needs) -> Asked:
    return {"device": "auto" if needs.get("gpu_hours") else None}


def _settings(use: Written) -> str:
    """A method with its settings in a file name; their digest if they are long."""
    text = "".join(f".{key}-{word_of(str(value))}" for key, value in use.params.items())
    return f".{use.name}{text if len(text) <= LONGEST else f'.{fingerprint(use.params)}'}"
