"""The steps of conditions, models and studies, with those of the indexes, candidates and labels they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rnnreranker.base.arguments import flag
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import find, names
from rnnreranker.base.settings import typed_name
from rnnreranker.base.written_form import Written
from rnnreranker.encode.params import QUERY_SIDE
from rnnreranker.index.request import USUAL, settings_with_flags
from rnnreranker.parts.base import part as part_of_name
from rnnreranker.parts.base import parts_of
from rnnreranker.regress.plans.step import Step, built_in, index_name, run_files, word_of, work_file
from rnnreranker.regress.specs.entries import Condition, IndexEntry, Model, OfTexts, QuerySet, Work
from rnnreranker.regress.specs.methods import (
    MODEL_OPTIONS,
    MODULES,
    beside_parts,
    check_labels,
    check_part,
    flags_of,
    has_context,
    labels_options,
    models_in,
    needs_of,
    parts_read,
    spec_part,
    use_with_folders,
    with_folders,
)
from rnnreranker.regress.specs.spec import Spec, planned

LONGEST = 60  # characters of settings in a file name
Needs = Mapping[str, Any]
Asked = dict[str, Any]  # of a command, as `Step.request`; None and "" are left out


class Maker:
    """Steps so far, each output once; published: query set and condition → its published run."""

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
        needs = condition.needs.get(query_set.id) or {}
        before = [self.condition(self.spec.condition(name), query_set)[0] for name in condition.of]
        if condition.fuse or condition.aggregate:
            how: Asked = {"runs": before, "method": condition.fuse, "aggregate": condition.aggregate}
            return [self._add("fuse", how | last, paths[0], before, needs)]
        index = self.spec.index(condition.index)
        inputs = self._with_parts(index, set().union(*(parts_read(kind, use) for _, kind, use in condition.uses())))
        asked = self._index_of(index) | {"topics": query_set.topics, "remove_query": query_set.remove_query or None}
        encoder = self._encoder(index)
        if condition.model:
            encoder = {"encoder": self._model(condition.model)}
            inputs += encoder.values()
        uses, named = self._resolved([use for _, _, use in condition.uses()])
        if condition.retrieve:
            asked |= self._retrieval(uses[0], encoder) | {"prf": condition.prf}
        elif condition.expand:
            asked |= encoder | {"run": before[0], "expand": condition.expand, "rerank": "none"}
        else:
            on_gpu = needs.get("gpu_hours") and any(find("reranker", use.name).takes_device for use in uses)
            asked |= encoder | {"run": before[0], "device": "auto" if on_gpu else None}
        for output, context in zip(paths, condition.contexts or [None], strict=True):
            if condition.rerank:
                asked["rerank"] = tuple(_with_context(use, context) for use in uses)
            self._add("search", asked | last, output, [*inputs, *named, *before], self._first(index), needs)
        return paths

    def work(self, work: Work) -> None:
        """The step of a study, a tuning, …: its options as flags, with files for entries."""
        module, inputs = MODULES.get(work.kind, work.kind), list[Path]()
        flags = flags_of(module)
        options = {key: "none" if value is None else value for key, value in work.options.items()}
        asked: Asked = {}
        if "query_set" in options:
            query_set = self.spec.query_set(options.pop("query_set"))
            if "of" in options:
                inputs += self.condition(self.spec.condition(options.pop("of")), query_set)[:1]
                asked["run"] = next(iter(inputs), None)
            own = {"topics": query_set.topics, "qrels": query_set.qrels, "protocol": query_set.protocols[0]}
            options = {name: value for name, value in own.items() if flag(name) in flags} | options
        if index := next((entry for entry in self.spec.indexes if entry.id == options.get("index")), None):
            del options["index"]
            of_graph = work.kind == "diagnosis" and "neighbours" in index.parts  # of an existing graph
            parts = {"neighbours"} if of_graph or options.get("from") == "both" else set()
            stages = [parts_read("retriever", Written.read(stage)) for stage in options.get("first_stages", ())]
            added = self._with_parts(index, parts.union(beside_parts(work.options), *stages))
            inputs += dict.fromkeys([*self._with_parts(index), *added])
            asked = self._index_of(index) | asked
        if "beside" in options:
            uses, named = self._resolved(work.teachers())
            inputs += named
            options["beside"] = [str(use) for use in uses]
        for key in [key for key in MODEL_OPTIONS if key in options]:
            inputs += map(self._model, models_in(options[key]))
            options[key] = with_folders(options[key], self._model)
        on_gpu = work.needs.get("gpu_hours") and "--device" in flags
        output = work_file(self.spec, self.folder, work)
        to = "record" if "--record" in flags else "output"
        self._add(module, asked | options | _device(on_gpu) | {to: output}, output, inputs, work.needs)

    def _add(self, module: str, asked: Asked, output: Path, inputs: Iterable[Path], *needs: Needs) -> Path:
        """The output of a step, added unless one makes it."""
        request = {name: value for name, value in asked.items() if value not in (None, "")}
        if not {"output", "record"} & set(request):
            request["output"] = output
        return self.steps.setdefault(output, Step(module, request, output, tuple(inputs), needs_of(needs))).output

    def _resolved(self, uses: Sequence[Written]) -> tuple[list[Written], list[Path]]:
        """Methods with folders for models, and these folders."""
        named = [self._model(name) for use in uses for name in models_in(use)]
        return [use_with_folders(use, self._model) for use in uses], named

    def _index_of(self, index: IndexEntry) -> Asked:
        return {"index": index_name(index, self.folder)}

    def _index(self, index: IndexEntry, part: str) -> list[Path]:
        """The files of an index with a part, after the steps that make them; none if no step makes it.

        The first part makes the index, other steps add parts: without Java or weights the first can be made.
        """
        if index.prebuilt or built_in(index):
            return []
        output, first = Path(index_name(index, self.folder)), _first_part(index)
        asked = documents_of(index) | {"output": output}
        device = _device(index.needs.get("gpu_hours"))
        flags, named = self._part(index, first)
        if first == USUAL and (other := self._of_the_same_vectors(index)):
            flags |= {"from_index": index_name(other, self.folder)}
            named += self._index(other, USUAL)
        elif part_of_name(first).encoder:
            flags |= device
        self._add("index", asked | flags, output, named, index.needs)
        if part == first:
            return [output]
        kind = part_of_name(part)
        flags, named = self._part(index, part)
        for origin in [one for one in check_part(part, index.parts.get(part)) if one in index.parts][:1]:
            named = [*[path for path in self._index(index, origin) if path != output], *named]
        made = output / (kind.folder or part)
        return [self._add("index", asked | flags | (device if kind.encoder else {}), made, [output, *named])]

    def _of_the_same_vectors(self, index: IndexEntry) -> IndexEntry | None:
        """The first earlier index with the same vectors, in a folder."""
        for one in self.spec.indexes[: self.spec.indexes.index(index)]:
            same = one.documents == index.documents and one.text == index.text
            if same and one.parts.get(USUAL) == index.parts[USUAL] and not built_in(one):
                return one
        return None

    def _part(self, index: IndexEntry, part: str) -> tuple[Asked, list[Path]]:
        """The request for a part, and the models that it takes."""
        named = [self._model(name) for name in models_in(index.parts.get(part) or {})]
        own = dict(spec_part(part, index.parts.get(part), self._model).params)
        flags = {
            typed_name(field): own.pop(field.name)
            for kind, field in settings_with_flags()
            if kind.name == part and field.name in own
        }
        return {"parts": None if part == USUAL and not own else Written(part, own)} | flags, named

    def _with_parts(self, index: IndexEntry, parts: Iterable[str] = ()) -> list[Path]:
        wanted, first = set(parts), _first_part(index)
        others = [name for name in names("part") if name in wanted and name != first] or [first]
        return list(dict.fromkeys(path for part in others for path in self._index(index, part)))

    def _retrieval(self, use: Written, encoder: Asked) -> Asked:
        queries = encoder if "query vectors" in find("retriever", use.name).needs else {}
        return {**queries, "retriever": use, "rerank": "none"}

    def _encoder(self, index: IndexEntry) -> Asked:
        """The request for the query encoder; {} for the default."""
        dense = spec_part(USUAL, index.parts.get(USUAL), self._model).params
        form = Written.read(dense.get("encoder", Written("")))
        form = Written(form.name, {key: value for key, value in form.params.items() if key not in QUERY_SIDE})
        return {"encoder": form} if form not in (Written(""), Written("minilm")) else {}

    def _first(self, index: IndexEntry | None) -> Needs:
        """The needs of a prebuilt index for its first reader."""
        if index is None or not index.prebuilt or index.prebuilt in self._read:
            return {}
        self._read.add(index.prebuilt)
        return index.needs

    def _model(self, name: str) -> Path:
        """The folder of a model, after the steps that make it."""
        model = self.spec.model(name)
        output = self._folder_of(model)
        if output in self.steps:
            return output
        source, inputs = self._source(model)
        (train,), named = self._resolved([model.train])
        asked: Asked = {"model": None if train == Written("query") else train}  # the default
        if not model.reads_texts_alone:
            made = self._labels(model)
            inputs = [made, *inputs]
            asked["labels" if model.labels else "negatives"] = made
        start: Asked = {"encoder": model.start} if model.start else self._encoder(self.spec.index(model.index))
        if model.starts:
            start = {"encoder": self._model(model.starts[0])}
            inputs += start.values()
        asked |= source | {"topics": model.topics}
        inputs = [*inputs, *named]
        if model.validation:
            asked["validation_run"] = self._candidates(model, model.validation.topics)
            inputs.append(asked["validation_run"])
            asked |= {f"validation_{key}": getattr(model.validation, key) for key in ("topics", "qrels")}
        return self._add("train", asked | start, output, inputs, model.needs)

    def _candidates(self, model: Model, topics: str) -> Path:
        """The run with a model's candidates for some topics."""
        index = self.spec.index(model.candidates or model.index)
        files = self._with_parts(index, parts_read("retriever", model.first))
        (first,), named = self._resolved([model.first])
        of = f"{word_of(index.prebuilt or index.documents)}.{index.id}.{first.name}{_settings(first.params)}"
        run = self.folder / "models" / f"{word_of(topics)}.{of}.txt"
        asked = self._index_of(index) | {"topics": topics} | self._retrieval(first, self._encoder(index))
        own = model.step_needs.get("candidates", {}) if topics == model.topics else {}
        return self._add("search", asked | {"hits": 1000}, run, [*files, *named], self._first(index), own)

    def _labels(self, model: Model) -> Path:
        """The labels or mined negatives of a model; models of texts share equal labels."""
        run = self._candidates(model, model.topics)
        key, given = ("labels", model.labels) if model.labels else ("negatives", model.negatives)
        assert given is not None
        (use,), named = self._resolved([given])
        labeler = check_labels(use) if model.labels else None
        method, options = labels_options(use) if labeler else (use, {})
        source, files = self._source(model, parts_of(labeler.needs) if labeler else ())
        index = self.spec.index(model.index) if model.index else None
        made, encoder = self._folder_of(model).with_name(f"{model.id}.parquet"), Asked()
        if labeler and model.train.name != "query":
            judged = "" if model.qrels == model.topics else f".{word_of(model.qrels)}"
            made = run.with_name(f"{run.stem}{judged}.{use.name}{_settings(use.params)}.parquet")
        elif index and not (labeler and use.params.get("from") == "neighbours"):
            encoder = self._encoder(index)
        own = model.step_needs.get(key, {})
        asked = {"run": run, **source, "topics": model.topics, "qrels": model.qrels, **encoder}
        asked |= {"method" if labeler else "filter": method, **options, "output": made}
        asked |= _device(own.get("gpu_hours") and labeler and labeler.takes_device)
        return self._add(key, asked, made, [run, *files, *named], self._first(index), own)

    def _folder_of(self, model: Model) -> Path:
        """The folder of a model; equal names in two specs have other topics."""
        index = self.spec.index(model.index) if model.index else None
        documents = index.prebuilt or index.documents if index else model.documents
        return self.folder / "models" / word_of(model.topics or documents) / model.id

    def _source(self, model: Model, parts: Iterable[str] = ()) -> tuple[Asked, list[Path]]:
        """The request for the documents or index of a model, and its files with some parts."""
        if model.documents:
            return documents_of(model), []
        index = self.spec.index(model.index)
        return self._index_of(index), self._with_parts(index, parts)


def documents_of(entry: OfTexts) -> Asked:
    return {"documents": entry.documents, "fields": ",".join(entry.text)}


def _device(on_gpu: Any) -> Asked:
    return {"device": "auto" if on_gpu else None}


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
