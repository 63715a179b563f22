"""The steps of an index of a spec, and the searches in it that other steps share."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rnnreranker.base.method import find
from rnnreranker.base.settings import typed_name, words
from rnnreranker.base.written import Written
from rnnreranker.encode.params import QUERY_SIDE, EncoderParams
from rnnreranker.regress.plans.step import ADDED, Step, built_in, documents_words, index_name
from rnnreranker.regress.specs.methods import OF_PART, parts_of
from rnnreranker.regress.specs.model_names import models_in, use_with_folders, with_folders
from rnnreranker.regress.specs.spec import Index, Spec


class IndexSteps(ABC):
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
        self.there: set[Path] = set()
        self._read: set[str] = set()  # prebuilt indexes that an earlier step reads

    @abstractmethod
    def model(self, name: str) -> Path:
        """The folder of a model of the spec, after the steps that make it."""

    def add(self, module: str, argv: list[str], output: Path, inputs: list[Path], needs: dict[str, Any]) -> None:
        """A step, unless one makes its output already."""
        if output not in self.there:
            self.there.add(output)
            self.steps.append(Step(module, tuple(argv), output, tuple(inputs), needs))

    def resolved(self, use: Written) -> tuple[Written, list[Path]]:
        """A method with folders in place of the models that its settings name, and these folders."""
        return use_with_folders(use, self.model), [self.model(name) for name in models_in(use)]

    def index(self, index: Index, part: str = "") -> tuple[str, list[Path]]:
        """What `--index` is given, and the files that must be made before.

        Its first part makes it, others are added for who reads them: without Java or weights the first still stands.
        """
        name = index_name(index, self.folder)
        if index.prebuilt or built_in(index):
            return name, []
        output = Path(name)
        argv = [*documents_words(index), "--output", name]
        first = next(own for own in ("dense", *ADDED) if own in index.parts)
        made = output
        flags, named = self._part(index, first)
        if first == "dense" and (other := self._of_the_same_vectors(index)):
            same, before = self.index(other)
            flags, named = [*flags, "--from-index", same], [*named, *before]
        self.add("index", [*argv, *flags], output, named, index.needs)
        if part in ADDED and part != first:
            made = output / ADDED[part]
            flags, named = self._part(index, part)
            self.add("index", [*argv, *flags], made, [output, *named], {})
        return name, [made]

    def _of_the_same_vectors(self, index: Index) -> Index | None:
        """The first index before this one in the spec that has the same vectors of the same documents, as a folder."""
        for one in self.spec.indexes[: self.spec.indexes.index(index)]:
            same = one.documents == index.documents and one.text == index.text
            if same and one.parts.get("dense") == index.parts["dense"] and not built_in(one):
                return one
        return None

    def _part(self, index: Index, part: str) -> tuple[list[str], list[Path]]:
        """A part as words of the command that makes it, and the models that this takes."""
        its = with_folders(index.parts.get(part) or {}, self.model)
        named = [self.model(name) for name in models_in(index.parts.get(part) or {})]
        own = words({f"{OF_PART.get(part, '')}{key}": value for key, value in its.items()})
        if part not in ("dense", "bm25", "neighbours"):
            return ["--parts", part, *own], named
        if part == "neighbours":
            return ["--parts", "neighbours", *own], named
        dense = words(with_folders(index.parts.get("dense") or {}, self.model))
        return (dense if part == "dense" else [*(dense or ["--no-dense"]), "--bm25", *own]), named

    def index_with(self, index: Index, parts: Iterable[str]) -> tuple[str, list[Path]]:
        """The index with some of its parts, as `index`."""
        wanted, files = set(parts), list[Path]()
        for part in [name for name in ADDED if name in wanted] or [""]:
            name, made = self.index(index, part)
            files += [path for path in made if path not in files]
        return name, files

    def index_for(self, use: Written, index: Index) -> tuple[str, list[Path]]:
        """The index with the parts that a retriever reads."""
        return self.index_with(index, parts_of(find("retriever", use.name).needs))

    def retrieval(self, use: Written, encoder: list[str]) -> list[str]:
        """A retrieval without anything after it, as words of `search`."""
        needs = find("retriever", use.name).needs
        queries = encoder if "query vectors" in needs else []
        return [*queries, "--retriever", str(use), "--rerank", "none"]

    def encoder(self, index: Index) -> list[str]:
        """How queries are encoded; nothing where it is the encoder that commands take without being told."""
        dense = with_folders(index.parts.get("dense") or {}, self.model)
        fields = [field for field in dataclasses.fields(EncoderParams) if field.name not in QUERY_SIDE]
        own = {field.name: dense[key] for field in fields if (key := typed_name(field)) in dense}
        form = Written(dense.get("encoder", ""), own)
        return ["--encoder", str(form)] if form not in (Written(""), Written("minilm")) else []

    def first_needs(self, index: Index) -> dict[str, Any]:
        """What the step that reads a prebuilt index first needs for it; others nothing."""
        if not index.prebuilt or index.prebuilt in self._read:
            return {}
        self._read.add(index.prebuilt)
        return index.needs
