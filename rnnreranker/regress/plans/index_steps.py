"""The steps of an index of a spec, and the searches in it that other steps share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rnnreranker.base.method import find, names
from rnnreranker.base.settings import typed_name, words
from rnnreranker.base.written_form import Written
from rnnreranker.encode.params import QUERY_SIDE
from rnnreranker.index.request import USUAL, choose_part, settings_with_flags
from rnnreranker.parts.needs import part as part_of_name
from rnnreranker.parts.needs import parts_of
from rnnreranker.regress.plans.step import ON_GPU, Step, built_in, documents_words, index_name
from rnnreranker.regress.specs.methods import models_in, spec_part, use_with_folders
from rnnreranker.regress.specs.spec import IndexEntry, Spec


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

    def index(self, index: IndexEntry, part: str = "") -> tuple[str, list[Path]]:
        """What `--index` is given, and the files that must be made before.

        Its first part makes it, others are added for who reads them: without Java or weights the first still stands.
        """
        name = index_name(index, self.folder)
        if index.prebuilt or built_in(index):
            return name, []
        output = Path(name)
        argv = [*documents_words(index), "--output", name]
        first = _first(index)
        made = output
        flags, named = self._part(index, first)
        if first == USUAL and (other := self._of_the_same_vectors(index)):
            same, before = self.index(other)
            flags, named = [*flags, "--from-index", same], [*named, *before]
        elif index.needs.get("gpu_hours") and part_of_name(first).encoder:
            flags = [*flags, *ON_GPU]
        self.add("index", [*argv, *flags], output, named, index.needs)
        if part and part != first:
            kind = part_of_name(part)
            made = output / (kind.folder or part)
            flags, named = self._part(index, part)
            flags += ON_GPU if index.needs.get("gpu_hours") and kind.encoder else []
            origins = kind.origins(choose_part(spec_part(part, index.parts.get(part))).params)
            for origin in [one for one in origins if one in index.parts][:1]:
                named = [*[path for path in self.index(index, origin)[1] if path != output], *named]
            self.add("index", [*argv, *flags], made, [output, *named], {})
        return name, [made]

    def _of_the_same_vectors(self, index: IndexEntry) -> IndexEntry | None:
        """The first index before this one in the spec that has the same vectors of the same documents, as a folder."""
        for one in self.spec.indexes[: self.spec.indexes.index(index)]:
            same = one.documents == index.documents and one.text == index.text
            if same and one.parts.get(USUAL) == index.parts[USUAL] and not built_in(one):
                return one
        return None

    def _part(self, index: IndexEntry, part: str) -> tuple[list[str], list[Path]]:
        """A part as words of the command that makes it, and the models that this takes."""
        named = [self.model(name) for name in models_in(index.parts.get(part) or {})]
        own = dict(spec_part(part, index.parts.get(part), self.model).params)
        flags = {}
        for kind, field in settings_with_flags():
            if kind.name == part and field.name in own:
                flags[typed_name(field)] = own.pop(field.name)
        asked = [] if part == USUAL and not own else ["--parts", str(Written(part, own))]
        return [*asked, *words(flags)], named

    def index_with(self, index: IndexEntry, parts: Iterable[str]) -> tuple[str, list[Path]]:
        """The index with some of its parts, as `index`."""
        wanted, files = set(parts), list[Path]()
        for part in [name for name in names("part") if name in wanted and name != _first(index)] or [""]:
            name, made = self.index(index, part)
            files += [path for path in made if path not in files]
        return name, files

    def index_for(self, use: Written, index: IndexEntry) -> tuple[str, list[Path]]:
        """The index with the parts that a retriever reads."""
        return self.index_with(index, parts_of(find("retriever", use.name).needs))

    def retrieval(self, use: Written, encoder: list[str]) -> list[str]:
        """A retrieval without anything after it, as words of `search`."""
        needs = find("retriever", use.name).needs
        queries = encoder if "query vectors" in needs else []
        return [*queries, "--retriever", str(use), "--rerank", "none"]

    def encoder(self, index: IndexEntry) -> list[str]:
        """How queries are encoded; nothing where it is the encoder that commands take without being told."""
        dense = spec_part(USUAL, index.parts.get(USUAL), self.model).params
        form = Written.read(dense.get("encoder", Written("")))
        own = {key: value for key, value in form.params.items() if key not in QUERY_SIDE}
        form = Written(form.name, own)
        return ["--encoder", str(form)] if form not in (Written(""), Written("minilm")) else []

    def first_needs(self, index: IndexEntry) -> dict[str, Any]:
        """What the step that reads a prebuilt index first needs for it; others nothing."""
        if not index.prebuilt or index.prebuilt in self._read:
            return {}
        self._read.add(index.prebuilt)
        return index.needs


def _first(index: IndexEntry) -> str:
    """The part that makes an index, to which others are added."""
    return next(name for name in names("part") if name in index.parts)
