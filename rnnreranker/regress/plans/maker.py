"""The steps of conditions, models and studies, with those of what they need: indexes, candidates, labels, trainings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rnnreranker.base.arguments import flag
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import find, names
from rnnreranker.base.settings import typed_name, words
from rnnreranker.base.written_form import Written
from rnnreranker.encode.params import QUERY_SIDE
from rnnreranker.index.request import USUAL, choose_part, settings_with_flags
from rnnreranker.parts.base import part as part_of_name
from rnnreranker.parts.base import parts_of
from rnnreranker.regress.plans.step import ON_GPU, Step, built_in, index_name, run_files, word_of, work_file
from rnnreranker.regress.specs.entries import Condition, IndexEntry, Model, QuerySet, Work
from rnnreranker.regress.specs.fields import needs_of
from rnnreranker.regress.specs.methods import (
    MODEL_OPTIONS,
    MODULES,
    beside_parts,
    beside_uses,
    check_labels,
    flags_of,
    has_context,
    labels_options,
    models_in,
    option_words,
    parts_read,
    spec_part,
    use_with_folders,
    with_folders,
)
from rnnreranker.regress.specs.spec import Spec, planned

LONGEST = 60  # characters of settings in a file name


class Maker:
    """Steps so far, each output once.

    Args:
        spec: what to reproduce.
        folder: of all files.
        published: query set and condition → the published run that it is.
    """

    def __init__(self, spec: Spec, folder: Path, published: Mapping[tuple[str, str], Path]) -> None:
        self.spec = spec
        self.folder = folder
        self.published = published
        self.steps: list[Step] = []
        self._made: set[Path] = set()
        self._read: set[str] = set()  # prebuilt indexes that an earlier step reads

    def condition(self, condition: Condition, query_set: QuerySet) -> list[Path]:
        """The run files of a condition on a query set, after the steps that make them; none for what is planned."""
        if planned(self.spec, condition):
            return []
        if given := self.published.get((query_set.id, condition.id)):
            return [given]
        paths = run_files(self.spec, self.folder, condition, query_set)
        if condition.published or set(paths) <= self._made:
            return paths
        last = ["--hits", str(self.spec.hits), "--tag", condition.id]
        needs = condition.needs.get(query_set.id) or {}
        before = [self.condition(self.spec.condition(name), query_set)[0] for name in condition.of]
        if condition.fuse or condition.aggregate:
            how = ["--method", str(condition.fuse)] if condition.fuse else ["--aggregate", str(condition.aggregate)]
            self._add("fuse", [*map(str, before), *how, *last], paths[0], before, [needs])
            return paths
        index = self.spec.index(condition.index)
        parts = set().union(*(parts_read(kind, use) for _, kind, use in condition.uses()))
        name, inputs = self._index_with(index, parts)
        encoder = self._encoder(index)
        if condition.model:
            trained = self._model(condition.model)
            encoder, inputs = ["--encoder", str(trained)], [*inputs, trained]
        uses, named = self._resolved([use for _, _, use in condition.uses()])
        argv = ["--index", name, "--topics", query_set.topics, *(["--remove-query"] if query_set.remove_query else [])]
        rerank = list[Written]()
        if condition.retrieve:
            argv += self._retrieval(uses[0], encoder)
            argv += ["--prf", str(condition.prf)] if condition.prf else []
        elif condition.expand:
            argv += [*encoder, "--run", str(before[0]), "--expand", str(condition.expand), "--rerank", "none"]
        else:
            rerank = uses
            argv += [*encoder, "--run", str(before[0])]
            if needs.get("gpu_hours") and any(find("reranker", use.name).takes_device for use in uses):
                argv += ON_GPU
        for output, context in zip(paths, condition.contexts or [None], strict=True):
            how = [word for use in rerank for word in ("--rerank", str(_with_context(use, context)))]
            self._add("search", [*argv, *how, *last], output, [*inputs, *named, *before], [self._first(index), needs])
        return paths

    def work(self, work: Work) -> None:
        """The step of a study, a tuning, …: its options in flags, with the files of the entries that they name."""
        options, inputs, argv = dict(work.options), list[Path](), list[str]()
        module = MODULES.get(work.kind, work.kind)
        if "query_set" in options:
            query_set = self.spec.query_set(options.pop("query_set"))
            if "of" in options:
                paths = self.condition(self.spec.condition(options.pop("of")), query_set)
                argv, inputs = ["--run", str(paths[0])], [*paths[:1]]
            own = {"topics": query_set.topics, "qrels": query_set.qrels, "protocol": query_set.protocols[0]}
            options = {name: value for name, value in own.items() if flag(name) in flags_of(module)} | options
        if "index" in options and any(entry.id == options["index"] for entry in self.spec.indexes):
            index = self.spec.index(options.pop("index"))
            of_graph = work.kind == "diagnosis" and "neighbours" in index.parts  # of a graph that is there
            first = ["neighbours" if of_graph or options.get("from") == "both" else ""]
            stages = [parts_read("retriever", Written.read(stage)) for stage in options.get("first_stages", ())]
            name, files = index_name(index, self.folder), list[Path]()
            for part in [*first, *(part for parts in stages for part in self._others(index, parts))]:
                files += self._index(index, part)
            for part in sorted(beside_parts(work.options)):
                files += self._index(index, part)
            argv, inputs = ["--index", name, *argv], [*inputs, *dict.fromkeys(files)]
        if "beside" in options:
            uses, named = self._resolved(beside_uses(work.options))
            inputs += named
            options["beside"] = [str(use) for use in uses]
        for key in [key for key in MODEL_OPTIONS if key in options]:
            inputs += map(self._model, models_in(options[key]))
            options[key] = with_folders(options[key], self._model)
        argv += [word for key, value in options.items() for word in option_words(key, value)]
        argv += ON_GPU if work.needs.get("gpu_hours") and ON_GPU[0] in flags_of(module) else []
        to = "--record" if "--record" in flags_of(module) else "--output"
        self._add(module, argv, work_file(self.spec, self.folder, work), inputs, [work.needs], to)

    def _add(
        self,
        module: str,
        argv: Sequence[str],
        output: Path,
        inputs: Sequence[Path],
        needs: Sequence[Mapping[str, Any]],
        to: str = "--output",
    ) -> Path:
        """A step, unless one makes its output already; its output. to: the flag that names it, "" = argv does."""
        if output not in self._made:
            self._made.add(output)
            words = (*argv, *((to, str(output)) if to else ()))
            self.steps.append(Step(module, words, output, tuple(inputs), needs_of(needs)))
        return output

    def _resolved(self, uses: Sequence[Written]) -> tuple[list[Written], list[Path]]:
        """Methods with folders in place of the models that their settings name, and these folders."""
        named = [self._model(name) for use in uses for name in models_in(use)]
        return [use_with_folders(use, self._model) for use in uses], named

    def _index(self, index: IndexEntry, part: str = "") -> list[Path]:
        """The files of an index that must be made before one reads it, after the steps that make them.

        Its first part makes it, others are added for who reads them: without Java or weights the first still stands.
        """
        if index.prebuilt or built_in(index):
            return []
        name = index_name(index, self.folder)
        output, first = Path(name), _first_part(index)
        argv = [*documents_words(index), "--output", name]
        on_gpu = ON_GPU if index.needs.get("gpu_hours") else []
        flags, named = self._part(index, first)
        if first == USUAL and (other := self._of_the_same_vectors(index)):
            flags, named = [*flags, "--from-index", index_name(other, self.folder)], [*named, *self._index(other)]
        elif part_of_name(first).encoder:
            flags = [*flags, *on_gpu]
        self._add("index", [*argv, *flags], output, named, [index.needs], "")
        if part in ("", first):
            return [output]
        kind = part_of_name(part)
        flags, named = self._part(index, part)
        flags += on_gpu if kind.encoder else []
        origins = kind.origins(choose_part(spec_part(part, index.parts.get(part))).params)
        for origin in [one for one in origins if one in index.parts][:1]:
            named = [*[path for path in self._index(index, origin) if path != output], *named]
        return [self._add("index", [*argv, *flags], output / (kind.folder or part), [output, *named], [], "")]

    def _of_the_same_vectors(self, index: IndexEntry) -> IndexEntry | None:
        """The first index before this one in the spec that has the same vectors of the same documents, as a folder."""
        for one in self.spec.indexes[: self.spec.indexes.index(index)]:
            same = one.documents == index.documents and one.text == index.text
            if same and one.parts.get(USUAL) == index.parts[USUAL] and not built_in(one):
                return one
        return None

    def _part(self, index: IndexEntry, part: str) -> tuple[list[str], list[Path]]:
        """A part as words of the command that makes it, and the models that this takes."""
        named = [self._model(name) for name in models_in(index.parts.get(part) or {})]
        own = dict(spec_part(part, index.parts.get(part), self._model).params)
        flags = {
            typed_name(field): own.pop(field.name)
            for kind, field in settings_with_flags()
            if kind.name == part and field.name in own
        }
        asked = [] if part == USUAL and not own else ["--parts", str(Written(part, own))]
        return [*asked, *words(flags)], named

    def _others(self, index: IndexEntry, parts: Iterable[str]) -> list[str]:
        """Those parts of an index that are added to it, or "" where none is."""
        wanted = set(parts)
        return [name for name in names("part") if name in wanted and name != _first_part(index)] or [""]

    def _index_with(self, index: IndexEntry, parts: Iterable[str]) -> tuple[str, list[Path]]:
        """What `--index` is given, and the files of the index with some of its parts, as `_index`."""
        files = [path for part in self._others(index, parts) for path in self._index(index, part)]
        return index_name(index, self.folder), list(dict.fromkeys(files))

    def _retrieval(self, use: Written, encoder: list[str]) -> list[str]:
        """A retrieval without anything after it, as words of `search`."""
        queries = encoder if "query vectors" in find("retriever", use.name).needs else []
        return [*queries, "--retriever", str(use), "--rerank", "none"]

    def _encoder(self, index: IndexEntry) -> list[str]:
        """How queries are encoded; nothing where it is the encoder that commands take by default."""
        dense = spec_part(USUAL, index.parts.get(USUAL), self._model).params
        form = Written.read(dense.get("encoder", Written("")))
        form = Written(form.name, {key: value for key, value in form.params.items() if key not in QUERY_SIDE})
        return ["--encoder", str(form)] if form not in (Written(""), Written("minilm")) else []

    def _first(self, index: IndexEntry | None) -> Mapping[str, Any]:
        """What the step that reads a prebuilt index first needs for it; others nothing."""
        if index is None or not index.prebuilt or index.prebuilt in self._read:
            return {}
        self._read.add(index.prebuilt)
        return index.needs

    def _model(self, name: str) -> Path:
        """The folder of a model of the spec, after the steps that make it."""
        model = self.spec.model(name)
        output = self._folder_of(model)
        if output in self._made:
            return output
        source, inputs = self._source(model)
        argv = list[str]()
        if not model.reads_texts_alone:
            made = self._labels(model)
            inputs = [made, *inputs]
            argv = ["--labels" if model.labels else "--negatives", str(made)]
        start, begun = self._start(model)
        (train,), named = self._resolved([model.train])
        kind = [] if train == Written("query") else ["--model", str(train)]  # query: what the command does by default
        argv = [*kind, *argv, *source, *(["--topics", model.topics] if model.topics else [])]
        inputs = [*inputs, *begun, *named]
        if model.validation:
            validation = self._candidates(model, model.validation.topics)
            inputs.append(validation)
            argv += ["--validation-run", str(validation), "--validation-topics", model.validation.topics]
            argv += ["--validation-qrels", model.validation.qrels]
        return self._add("train", [*argv, *start], output, inputs, [model.needs])

    def _candidates(self, model: Model, topics: str) -> Path:
        """The run that a model's candidates for some topics are taken from."""
        index = self.spec.index(model.candidates or model.index)
        name, files = self._index_with(index, parts_read("retriever", model.first))
        (first,), named = self._resolved([model.first])
        of = f"{word_of(index.prebuilt or index.documents)}.{index.id}.{first.name}{_settings(first.params)}"
        run = self.folder / "models" / f"{word_of(topics)}.{of}.txt"
        argv = ["--index", name, "--topics", topics, *self._retrieval(first, self._encoder(index)), "--hits", "1000"]
        own = model.step_needs.get("candidates", {}) if topics == model.topics else {}
        return self._add("search", argv, run, [*files, *named], [self._first(index), own])

    def _labels(self, model: Model) -> Path:
        """The labels or mined negatives of a model's training queries; models of texts share labels that are equal."""
        run = self._candidates(model, model.topics)
        key, given = ("labels", model.labels) if model.labels else ("negatives", model.negatives)
        assert given is not None
        (use,), named = self._resolved([given])
        method, options = labels_options(use) if model.labels else (use, {})
        source, files = self._source(model, parts_of(check_labels(use).needs) if model.labels else ())
        index = self.spec.index(model.index) if model.index else None
        made, encoder = self._folder_of(model).with_name(f"{model.id}.parquet"), list[str]()
        if model.labels and model.train.name != "query":
            judged = "" if model.qrels == model.topics else f".{word_of(model.qrels)}"
            made = run.with_name(f"{run.stem}{judged}.{use.name}{_settings(use.params)}.parquet")
        elif index and not (model.labels and use.params.get("from") == "neighbours"):
            encoder = self._encoder(index)
        argv = ["--run", str(run), *source, "--topics", model.topics, "--qrels", model.qrels, *encoder]
        argv += ["--method" if model.labels else "--filter", str(method), *words(options), "--output", str(made)]
        own = model.step_needs.get(key, {})
        if own.get("gpu_hours") and model.labels and check_labels(use).takes_device:
            argv += ON_GPU
        return self._add(key, argv, made, [run, *files, *named], [self._first(index), own], "")

    def _folder_of(self, model: Model) -> Path:
        """The folder of a model: models of two specs may have one name, and are then trained on other topics."""
        index = self.spec.index(model.index) if model.index else None
        documents = index.prebuilt or index.documents if index else model.documents
        return self.folder / "models" / word_of(model.topics or documents) / model.id

    def _source(self, model: Model, parts: Iterable[str] = ()) -> tuple[list[str], list[Path]]:
        """Where vectors or texts, or other parts, come from, as words of a command, and the files of it."""
        if model.documents:
            return documents_words(model), []
        name, files = self._index_with(self.spec.index(model.index), parts)
        return ["--index", name], files

    def _start(self, model: Model) -> tuple[list[str], list[Path]]:
        """What the training begins with, as words of a command, and the model of the spec that it is."""
        if model.starts:
            folder = self._model(model.starts[0])
            return ["--encoder", str(folder)], [folder]
        return words({"encoder": model.start}) if model.start else self._encoder(self.spec.index(model.index)), []


def documents_words(entry: IndexEntry | Model) -> list[str]:
    """The documents of an index or a model, and which of their fields are read, as words of a command."""
    return ["--documents", entry.documents, *(["--fields", ",".join(entry.text)] if entry.text else [])]


def _first_part(index: IndexEntry) -> str:
    """The part that makes an index, to which others are added."""
    return next(name for name in names("part") if name in index.parts)


def _settings(params: dict[str, object]) -> str:
    """Settings as part of a file name: long ones by a fingerprint."""
    text = "".join(f".{key}-{word_of(str(value))}" for key, value in params.items())
    return text if len(text) <= LONGEST else f".{fingerprint(params)}"


def _with_context(use: Written, context: int | None) -> Written:
    """A reranker with another context, where it has one."""
    if context is None or not has_context(use):
        return use
    return replace(use, params={**use.params, "context": context})
