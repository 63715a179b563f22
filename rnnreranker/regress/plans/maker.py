"""The steps of conditions, models and studies, with those of the indexes, candidates and labels they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rnnreranker.base.arguments import flag
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import find, names
from rnnreranker.base.written_form import Written
from rnnreranker.encode.params import QUERY_SIDE
from rnnreranker.index.request import USUAL, settings_with_flags
from rnnreranker.parts.base import part as part_of_name
from rnnreranker.parts.base import parts_of
from rnnreranker.regress.plans.step import Step, built_in, index_name, named_in, run_files, word_of, work_file
from rnnreranker.regress.specs.entries import MODEL_OPTIONS, Condition, IndexEntry, Model, QuerySet, Work
from rnnreranker.regress.specs.methods import (
    choose_labels,
    flags_of,
    has_context,
    labels_options,
    models_in,
    needs_of,
    parts_read,
    spec_part,
    teacher,
    with_folders,
)
from rnnreranker.regress.specs.spec import Spec, planned

LONGEST = 60  # characters of settings in a file name
Needs = Mapping[str, Any]
Asked = dict[str, Any]  # of a command, as `Step.request`; None and "" are left out


class Maker:
    """Steps so far, each output once; published: query set and condition → its published run.

    What a request names and an earlier step makes is an input; parts of indexes and published runs are given.
    """

    def __init__(self, spec: Spec, folder: Path, published: Mapping[tuple[str, str], Path]) -> None:
        self.spec = spec
        self.folder = folder
        self.published = published
        self.steps: dict[Path, Step] = {}
        self._read: set[str] = set()  # prebuilt indexes that an earlier step reads

    def condition(self, condition: Condition, query_set: QuerySet) -> list[Path]:
        """The run files of a condition, after the steps that make them; none if it is planned."""
        if planned(self.spec, condition):
            return []
        if given := self.published.get((query_set.id, condition.id)):
            return [given]
        paths = run_files(self.spec, self.folder, condition, query_set)
        if condition.published or self.steps.keys() >= set(paths):
            return paths
        last = {"hits": self.spec.hits, "tag": condition.id}
        needs = condition.needs.get(query_set.id, {})
        before = [self.condition(self.spec.condition(name), query_set)[0] for name in condition.of]
        if condition.fuse or condition.aggregate:
            how: Asked = {"runs": before, "method": condition.fuse, "aggregate": condition.aggregate}
            return [self._add("fuse", how | last, paths[0], needs, before)]
        index, used = self.spec.index(condition.index), condition.uses()
        parts = self._parts(index, set().union(*(parts_read(kind, use) for _, kind, use in used)))
        asked = self._index_of(index) | {"topics": query_set.topics, "remove_query": query_set.remove_query or None}
        encoder = {"encoder": self.model(condition.model)} if condition.model else self._encoder(index)
        uses = [with_folders(use, self.model) for _, _, use in used]
        parts += [self.model(name) for name in [condition.model, *models_in([use for _, _, use in used])] if name]
        if condition.retrieve:
            asked |= self._retrieval(uses[0], encoder) | {"prf": condition.prf}
        elif condition.expand:
            asked |= encoder | {"run": before[0], "expand": condition.expand, "rerank": "none"}
        else:
            on_gpu = any(find("reranker", use.name).takes_device for use in uses)
            asked |= encoder | {"run": before[0]} | _device(needs if on_gpu else {})
        contexts: list[Any] = condition.contexts or [None]
        for output, context in zip(paths, contexts, strict=True):
            if condition.rerank:
                asked["rerank"] = tuple(_with_context(use, context) for use in uses)
            self._add("search", asked | last, output, needs, [*parts, *before])
        return paths

    def work(self, work: Work) -> None:
        """The step of a study, a tuning, …: its options as flags, with files for entries."""
        flags, asked, parts = flags_of(work.module), Asked(), list[Path]()
        options = {key: "none" if value is None else value for key, value in work.options.items()}
        if "query_set" in options:
            query_set = self.spec.query_set(options.pop("query_set"))
            if "of" in options:
                asked["run"] = next(iter(self.condition(self.spec.condition(options.pop("of")), query_set)), None)
            own = {"topics": query_set.topics, "qrels": query_set.qrels, "protocol": query_set.protocols[0]}
            options = {name: value for name, value in own.items() if flag(name) in flags} | options
        if index := next((entry for entry in self.spec.indexes if entry.id == options.get("index")), None):
            del options["index"]
            of_graph = work.kind == "diagnosis" and "neighbours" in index.parts  # of an existing graph
            read = {"neighbours"} if of_graph or options.get("from") == "both" else set()
            stages = [parts_read("retriever", Written.read(stage)) for stage in options.get("first_stages", ())]
            read = read.union(*(parts_of(teacher(use).chosen.needs) for use in work.beside), *stages)
            parts = [*self._parts(index), *self._parts(index, read)]
            asked = self._index_of(index) | asked
        if work.beside:
            options["beside"] = [str(with_folders(use, self.model)) for use in work.beside]
        options |= {key: with_folders(options[key], self.model) for key in MODEL_OPTIONS if key in options}
        output = work_file(self.spec, self.folder, work)
        to = "record" if "--record" in flags else "output"
        device = _device(work.needs if "--device" in flags else {})
        self._add(work.module, asked | options | device | {to: output}, output, work.needs, parts)

    def _add(self, module: str, asked: Asked, output: Path, needs: Needs, others: Iterable[Path] = ()) -> Path:
        """The output of a step, added unless one makes it; a prebuilt index is a need of its first reader."""
        if output in self.steps:
            return output
        request = {name: value for name, value in asked.items() if value not in (None, "")}
        if not {"output", "record"} & set(request):
            request["output"] = output
        inputs = [*others, *(path for path in map(Path, named_in(request)) if path in self.steps)]
        read = (entry for entry in self.spec.indexes if entry.prebuilt == request.get("index") not in self._read)
        first = next((entry.needs for entry in read), {})
        self._read.add(str(request.get("index")))
        both = needs_of([first, needs])
        self.steps[output] = Step(module, request, output, tuple(dict.fromkeys(inputs)), both, first)
        return output

    def _index_of(self, index: IndexEntry) -> Asked:
        return {"index": index_name(index, self.folder)}

    def _parts(self, index: IndexEntry, parts: Iterable[str] = ()) -> list[Path]:
        """The files of parts of an index, or of its first part, after the steps that make them."""
        if index.prebuilt or built_in(index):
            return []
        first = _first_part(index)
        wanted = [name for name in names("part") if name in {*parts} and name != first] or [first]
        return [self._part(index, name) for name in wanted]

    def _part(self, index: IndexEntry, name: str) -> Path:
        """The file of a part of an index, after its step.

        The first part makes the index, other steps add parts: without Java or weights the first can be made.
        """
        output, first, kind = Path(index_name(index, self.folder)), _first_part(index), part_of_name(name)
        made = output if name == first else output / (kind.folder or name)
        before = [] if name == first else [self._part(index, first)]
        if made in self.steps:
            return made
        own = dict(spec_part(name, index.parts[name], self.model).params)
        flags = {
            hint.flag: own.pop(hint.field.name)
            for of, hint in settings_with_flags()
            if of.name == name and hint.field.name in own
        }
        asked = {"documents": index.documents, "fields": ",".join(index.text), "output": output}
        asked |= {"parts": None if name == USUAL and not own else Written(name, own)} | flags
        same = self._of_the_same_vectors(index) if name == first == USUAL else None
        if same:
            asked |= {"from_index": self._part(same, USUAL)}
        elif kind.encoder:
            asked |= _device(index.needs)
        if before:
            origins = [one for one in index.origins(name) if one in index.parts]
            before += [self._part(index, one) for one in origins[:1]]
        return self._add("index", asked, made, {} if before else index.needs, before)

    def _of_the_same_vectors(self, index: IndexEntry) -> IndexEntry | None:
        """The first earlier index with the same vectors, in a folder."""
        for one in self.spec.indexes[: self.spec.indexes.index(index)]:
            same = one.documents == index.documents and one.text == index.text
            if same and one.parts.get(USUAL) == index.parts[USUAL] and not built_in(one):
                return one
        return None

    def _retrieval(self, use: Written, encoder: Asked) -> Asked:
        queries = encoder if "query vectors" in find("retriever", use.name).needs else {}
        return {**queries, "retriever": use, "rerank": "none"}

    def _encoder(self, index: IndexEntry | None) -> Asked:
        """The request for the query encoder; {} for the default."""
        dense = spec_part(USUAL, index.parts.get(USUAL), self.model).params if index else {}
        form = Written.read(dense.get("encoder", Written("")))
        form = Written(form.name, {key: value for key, value in form.params.items() if key not in QUERY_SIDE})
        return {"encoder": form} if form not in (Written(""), Written("minilm")) else {}

    def model(self, name: str) -> Path:
        """The folder of a model, after the steps that make it."""
        model = self.spec.model(name)
        output = self._folder_of(model)
        if output in self.steps:
            return output
        source, parts = self._source(model)
        train = with_folders(model.train, self.model)
        asked: Asked = {"model": None if train == Written("query") else train}  # the default
        if not model.reads_texts_alone:
            asked["labels" if model.labels else "negatives"] = self._labels(model)
        start = {"encoder": with_folders(model.start, self.model)} if model.start else self._encoder(self._own(model))
        asked |= source | {"topics": model.topics}
        if model.validation:
            asked["validation_run"] = self._candidates(model, model.validation.topics)
            asked |= {f"validation_{key}": getattr(model.validation, key) for key in ("topics", "qrels")}
        return self._add("train", asked | start, output, model.needs, parts)

    def _candidates(self, model: Model, topics: str) -> Path:
        """The run with a model's candidates for some topics."""
        index = self.spec.index(model.candidates or model.index)
        parts = self._parts(index, parts_read("retriever", model.first))
        first = with_folders(model.first, self.model)
        of = f"{word_of(index.prebuilt or index.documents)}.{index.id}.{first.name}{_settings(first.params)}"
        run = self.folder / "models" / f"{word_of(topics)}.{of}.txt"
        asked = self._index_of(index) | {"topics": topics} | self._retrieval(first, self._encoder(index))
        own = model.step_needs.get("candidates", {}) if topics == model.topics else {}
        return self._add("search", asked | {"hits": 1000}, run, own, parts)

    def _labels(self, model: Model) -> Path:
        """The labels or mined negatives of a model; models of texts share equal labels."""
        run = self._candidates(model, model.topics)
        key, given = ("labels", model.labels) if model.labels else ("negatives", model.negatives)
        use = with_folders(given, self.model)
        labeler = choose_labels(use) if model.labels else None
        method, options = labels_options(use) if labeler else (use, {})
        source, parts = self._source(model, parts_of(labeler.needs) if labeler else ())
        made, encoder = self._folder_of(model).with_name(f"{model.id}.parquet"), Asked()
        if labeler and model.train.name != "query":
            judged = "" if model.qrels == model.topics else f".{word_of(model.qrels)}"
            made = run.with_name(f"{run.stem}{judged}.{use.name}{_settings(use.params)}.parquet")
        elif not (labeler and use.params.get("from") == "neighbours"):
            encoder = self._encoder(self._own(model))
        own = model.step_needs.get(key, {})
        asked = {"run": run, **source, "topics": model.topics, "qrels": model.qrels, **encoder}
        asked |= {"method" if labeler else "filter": method, **options, "output": made}
        asked |= _device(own if labeler else {})
        return self._add(key, asked, made, own, parts)

    def _own(self, model: Model) -> IndexEntry | None:
        return self.spec.index(model.index) if model.index else None

    def _folder_of(self, model: Model) -> Path:
        """The folder of a model; equal names in two specs have other topics."""
        index = self._own(model)
        documents = index.prebuilt or index.documents if index else model.documents
        return self.folder / "models" / word_of(model.topics or documents) / model.id

    def _source(self, model: Model, parts: Iterable[str] = ()) -> tuple[Asked, list[Path]]:
        """The request for the documents or index of a model, and its files with some parts."""
        if index := self._own(model):
            return self._index_of(index), self._parts(index, parts)
        return {"documents": model.documents, "fields": ",".join(model.text)}, []


def _device(needs: Needs) -> Asked:
    return {"device": "auto" if needs.get("gpu_hours") else None}


def _first_part(index: IndexEntry) -> str:
    """The part that makes an index, to which others are added."""
    return next(name for name in names("part") if name in index.parts)


def _settings(params: dict[str, object]) -> str:
    """Settings in a file name; a digest if they are long."""
    text = "".join(f".{key}-{word_of(str(value))}" for key, value in params.items())
    return text if len(text) <= LONGEST else f".{fingerprint(params)}"


def _with_context(use: Written, context: int | None) -> Written:
    """A reranker with another context, if it has one."""
    if context is None or not has_context(use):
        return use
    return replace(use, params={**use.params, "context": context})
