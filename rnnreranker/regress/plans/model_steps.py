"""The steps of a model of a spec: candidates of its training queries, their labels or negatives, its training."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rnnreranker.base.files import fingerprint
from rnnreranker.base.settings import words
from rnnreranker.base.written_form import Written
from rnnreranker.parts.needs import parts_of
from rnnreranker.regress.plans.index_steps import IndexSteps
from rnnreranker.regress.plans.step import ON_GPU, documents_words, word_of
from rnnreranker.regress.specs.fields import needs_of
from rnnreranker.regress.specs.methods import check_labels, labels_options
from rnnreranker.regress.specs.spec import Model

LONGEST = 60  # characters of settings in a file name


class ModelSteps(IndexSteps):
    """Steps so far, with those of models."""

    def model(self, name: str) -> Path:
        """The folder of a model of the spec, after the steps that make it."""
        model = self.spec.model(name)
        output = self._place(model)
        if output in self.there:
            return output
        if model.reads_texts_alone:
            return self._of_texts(model, output)
        source, inputs = self._source(model)
        made = self._labels(model) if model.labels else self._negatives(model)
        start, begun = self._start(model)
        train, named = self.resolved(model.train)
        kind = [] if train == Written("query") else ["--model", str(train)]  # query: what the command does untold
        argv = [*kind, "--labels" if model.labels else "--negatives", str(made), *source, "--topics", model.topics]
        inputs = [made, *inputs, *begun, *named]
        if model.validation:
            validation = self.candidates(model, model.validation.topics)
            inputs.append(validation)
            argv += ["--validation-run", str(validation)]
            argv += [
                word for key in ("topics", "qrels") for word in (f"--validation-{key}", getattr(model.validation, key))
            ]
        argv += [*start, "--output", str(output)]
        self.add("train", argv, output, inputs, model.needs)
        return output

    def _of_texts(self, model: Model, output: Path) -> Path:
        """The folder of a model that learns from texts alone, after the step that makes it."""
        source, inputs = self._source(model)
        start, begun = self._start(model)
        train, named = self.resolved(model.train)
        argv = ["--model", str(train), *source, *start, "--output", str(output)]
        self.add("train", argv, output, [*inputs, *begun, *named], model.needs)
        return output

    def candidates(self, model: Model, topics: str) -> Path:
        """The run that a model's candidates for some topics are taken from."""
        index = self.spec.index(model.candidates or model.index)
        name, files = self.index_for(model.first, index)
        first, named = self.resolved(model.first)
        of = f"{word_of(index.prebuilt or index.documents)}.{index.id}.{first.name}{_settings(first.params)}"
        run = self.folder / "models" / f"{word_of(topics)}.{of}.txt"
        argv = ["--index", name, "--topics", topics, *self.retrieval(first, self.encoder(index))]
        argv += ["--hits", "1000", "--output", str(run)]
        own = model.step_needs.get("candidates", {}) if topics == model.topics else {}
        self.add("search", argv, run, [*files, *named], needs_of([self.first_needs(index), own]))
        return run

    def _labels(self, model: Model) -> Path:
        """The labels of a model's training queries; those of texts are shared by models that want the same."""
        assert model.labels is not None
        by_graph = model.labels.params.get("from") == "neighbours"
        run = self.candidates(model, model.topics)
        labels, named = self.resolved(model.labels)
        source, files = self._source(model, parts_of(check_labels(labels).needs))
        made, encoder = self._place(model).with_name(f"{model.id}.parquet"), []
        if model.train.name == "query":
            encoder = [] if by_graph else self.encoder(self.spec.index(model.index))
        else:
            judged = "" if model.qrels == model.topics else f".{word_of(model.qrels)}"
            made = run.with_name(f"{run.stem}{judged}.{labels.name}{_settings(labels.params)}.parquet")
        argv = ["--run", str(run), *source, "--topics", model.topics, "--qrels", model.qrels, *encoder]
        method, options = labels_options(labels)
        argv += ["--method", str(method), *words(options), "--output", str(made)]
        own = model.step_needs.get("labels", {})
        if own.get("gpu_hours") and check_labels(labels).takes_device:
            argv += ON_GPU
        needs = [self.first_needs(self.spec.index(model.index))] if model.index else []
        self.add("labels", argv, made, [run, *files, *named], needs_of([*needs, own]))
        return made

    def _negatives(self, model: Model) -> Path:
        """The mined negatives of a model's training queries."""
        assert model.negatives is not None
        source, files = self._source(model)
        run = self.candidates(model, model.topics)
        mined, named = self.resolved(model.negatives)
        made, needs, encoder = self._place(model).with_name(f"{model.id}.parquet"), {}, []
        if model.index:
            index = self.spec.index(model.index)
            encoder, needs = self.encoder(index), self.first_needs(index)
        argv = ["--run", str(run), *source, "--topics", model.topics, "--qrels", model.qrels, *encoder]
        argv += ["--filter", str(mined), "--output", str(made)]
        self.add(
            "negatives", argv, made, [run, *files, *named], needs_of([needs, model.step_needs.get("negatives", {})])
        )
        return made

    def _place(self, model: Model) -> Path:
        """The folder of a model: models of two specs may have one name, and are then trained on other topics."""
        return self.folder / "models" / word_of(model.topics or self._documents(model)) / model.id

    def _documents(self, model: Model) -> str:
        """What the documents are called that a model reads."""
        index = self.spec.index(model.index) if model.index else None
        return index.prebuilt or index.documents if index else model.documents

    def _source(self, model: Model, parts: Iterable[str] = ()) -> tuple[list[str], list[Path]]:
        """Where vectors or texts, or other parts, come from, as words of a command, and the files of it."""
        if model.documents:
            return documents_words(model), []
        name, files = self.index_with(self.spec.index(model.index), parts)
        return ["--index", name], files

    def _start(self, model: Model) -> tuple[list[str], list[Path]]:
        """What the training begins with, as words of a command, and the model of the spec that it is."""
        named = model.starts
        if named:
            folder = self.model(named[0])
            return ["--encoder", str(folder)], [folder]
        return words({"encoder": model.start}) if model.start else self.encoder(self.spec.index(model.index)), []


def _settings(params: dict[str, object]) -> str:
    """Settings as part of a file name: long ones by a fingerprint."""
    text = "".join(f".{key}-{word_of(str(value))}" for key, value in params.items())
    return text if len(text) <= LONGEST else f".{fingerprint(params)}"
