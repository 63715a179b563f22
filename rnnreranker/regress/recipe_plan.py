"""The plan of a recipe: every command from index to measures, with what each needs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rnnreranker.regress.recipe import Condition, IndexSource, Model, Recipe, planned
from rnnreranker.settings import flag

PASTE_FOLDER = Path("runs")  # where printed commands put their files


@dataclass(frozen=True)
class RecipeStep:
    """One command: `python -m rnnreranker.<module> <argv>`; what it makes, from which files of other steps."""

    module: str
    argv: tuple[str, ...]
    output: Path
    inputs: tuple[Path, ...] = ()
    needs: dict[str, Any] = field(default_factory=dict)

    def command(self) -> str:
        """The line to paste into a shell."""
        return shlex.join(["python", "-m", f"rnnreranker.{self.module}", *self.argv])


@dataclass(frozen=True)
class RecipePlan:
    """The steps of conditions of a recipe, in an order in which they can be taken; each once."""

    recipe: Recipe
    folder: Path
    conditions: tuple[Condition, ...]
    steps: tuple[RecipeStep, ...]

    def run_files(self, condition: Condition) -> list[Path]:
        """The run files of a condition: one, or one for each context of a sweep."""
        return run_files(self.recipe, self.folder, condition)

    def evaluations(self) -> list[str]:
        """The lines that print the measured values of all runs, one for each protocol."""
        made = {step.output for step in self.steps}
        paths = [path for condition in self.conditions for path in self.run_files(condition)]
        runs = [str(path) for path in paths if path in made]  # nothing makes the runs of what is planned
        return [
            shlex.join(
                [
                    *("python", "-m", "rnnreranker.evaluate", *runs, "--qrels", self.recipe.qrels),
                    *("--protocol", protocol, "--measures", " ".join(self.recipe.measures)),
                ]
            )
            for protocol in self.recipe.protocols
            if runs
        ]


def run_files(recipe: Recipe, folder: Path, condition: Condition) -> list[Path]:
    """Where the runs of a condition are written."""
    return [folder / recipe.name / f"{name}.txt" for name in condition.run_names]


def make_recipe_plan(recipe: Recipe, folder: Path, conditions: tuple[Condition, ...]) -> RecipePlan:
    """The plan of these conditions and those they need, all files under `folder`.

    Indexes and models are shared by recipes: they go to `folder/indexes` and `folder/models`.
    """
    maker = _Maker(recipe, folder)
    for condition in conditions:
        maker.condition(condition)
    return RecipePlan(recipe, folder, conditions, tuple(maker.steps))


class _Maker:
    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.recipe = recipe
        self.folder = folder
        self.steps: list[RecipeStep] = []
        self._there: set[Path] = set()
        self._read: set[str] = set()  # prebuilt indexes that an earlier step reads

    def _add(self, module: str, argv: list[str], output: Path, inputs: list[Path], needs: dict[str, Any]) -> None:
        if output not in self._there:
            self._there.add(output)
            self.steps.append(RecipeStep(module, tuple(argv), output, tuple(inputs), needs))

    def index(self, source: IndexSource) -> tuple[str, list[Path]]:
        """What `--index` is given, and the files that must be made before."""
        if source.prebuilt:
            return source.prebuilt, []
        output = self.folder / "indexes" / f"{_word(source.documents)}.{source.id}"
        argv = ["--documents", source.documents, "--output", str(output)]
        dense = [*_encoder(source), "--dtype", source.dtype]
        self._add("index", argv + (dense if source.encoder else ["--no-dense", "--bm25"]), output, [], source.needs)
        return str(output), [output]

    def first_needs(self, source: IndexSource) -> dict[str, Any]:
        """What the step that reads a prebuilt index first needs for it; others nothing."""
        if not source.prebuilt or source.prebuilt in self._read:
            return {}
        self._read.add(source.prebuilt)
        return source.needs

    def model(self, model: Model) -> Path:
        """The folder of a trained encoder, after the steps that make it."""
        output = self.folder / "models" / model.id
        if output in self._there:
            return output
        source = self.recipe.index(model.index)
        index, index_files = self.index(source)
        first = self.recipe.index(model.candidates)
        candidates, candidate_files = self.index(first)
        run = (
            self.folder / "models" / f"{_word(model.topics)}.{_word(first.prebuilt or first.documents)}.{first.id}.txt"
        )
        argv = ["--index", candidates, "--topics", model.topics]
        argv += ["--retriever", "dense" if first.encoder else "bm25", *_encoder(first)]
        argv += ["--rerank", "none", "--hits", "1000", "--output", str(run)]
        self._add("search", argv, run, candidate_files, self.first_needs(first))

        labels = self.folder / "models" / f"{model.id}.parquet"
        argv = ["--run", str(run), "--index", index, "--topics", model.topics, "--qrels", model.qrels]
        argv += _encoder(source) + _options(model.labels) + ["--output", str(labels)]
        self._add("labels", argv, labels, [run, *index_files], self.first_needs(source))

        start = self.model(self.recipe.model(model.from_model)) if model.from_model else None
        argv = ["--labels", str(labels), "--index", index, "--topics", model.topics]
        argv += ["--encoder", str(start)] if start else _encoder(source)
        argv += [*_options(model.train), "--output", str(output)]
        self._add("train", argv, output, [labels, *index_files, *([start] if start else [])], model.needs)
        return output

    def condition(self, condition: Condition) -> None:
        if planned(self.recipe, condition):
            return
        source = self.recipe.index(condition.index)
        index, inputs = self.index(source)
        encoder = _encoder(source)
        if condition.model:
            trained = self.model(self.recipe.model(condition.model))
            encoder, inputs = ["--encoder", str(trained)], [*inputs, trained]
        argv = ["--index", index, "--topics", self.recipe.topics]
        argv += encoder if condition.retrieve != "bm25" else []
        if condition.retrieve:
            argv += ["--retriever", condition.retrieve, "--rerank", "none", *_options(condition.params)]
        else:
            base = self.recipe.condition(condition.base)
            self.condition(base)
            run = run_files(self.recipe, self.folder, base)[0]
            argv += ["--run", str(run), "--rerank", condition.rerank, *_option("--preset", condition.preset)]
            argv += _options(condition.params)
            inputs = [*inputs, run]
        paths = run_files(self.recipe, self.folder, condition)
        for output, context in zip(paths, condition.contexts or [None], strict=True):
            last = ["--context", str(context)] if context is not None else []
            last += ["--hits", str(self.recipe.hits), "--tag", condition.id, "--output", str(output)]
            self._add("search", [*argv, *last], output, inputs, self.first_needs(source))


def value_of(argv: Sequence[str], word: str) -> str:
    """What follows a flag, or an empty text."""
    return argv[argv.index(word) + 1] if word in argv else ""


def needs_of(plan: RecipePlan) -> dict[str, Any]:
    """What a plan needs in all: sizes and hours added up (memory: the most), agreements and files listed once."""
    total: dict[str, Any] = {}
    for needs in (plan.recipe.needs, *(step.needs for step in plan.steps)):
        for key, value in needs.items():
            if isinstance(value, str):
                texts = total.setdefault(key, "")
                total[key] = texts if value in texts else "; ".join(filter(None, (texts, value)))
            elif key == "ram_gb":
                total[key] = max(total.get(key, 0), value)
            else:
                total[key] = total.get(key, 0) + value
    return total


def needs_text(needs: dict[str, object]) -> str:
    """Needs in words."""
    units = {"disk_gb": "GB of disk", "ram_gb": "GB of memory", "download_gb": "GB to download"}
    units |= {"gpu_hours": "hours of a GPU", "hours": "hours of computing"}
    texts = [
        f"{value:g} {units[key]}" if key in units and isinstance(value, int | float) else str(value)
        for key, value in needs.items()
    ]
    return ", ".join(text.replace("hours", "hour", 1) if text.startswith("1 hours") else text for text in texts)


def _word(name: str) -> str:
    """The name of a data set or file as part of a file name."""
    return name.replace("/", "-").replace(":", "-").strip("-.")


def _encoder(source: IndexSource) -> list[str]:
    return _option("--encoder", source.encoder) + _option("--pooling", source.pooling)


def _option(name: str, value: str) -> list[str]:
    return [name, value] if value else []


def _options(values: dict[str, Any]) -> list[str]:
    """`{n_max: 4, learn_temperature: true}` as words of a command line."""
    words: list[str] = []
    for name, value in values.items():
        word = flag(name)
        if isinstance(value, bool):
            words.append(word if value else "--no-" + word.removeprefix("--"))
        else:
            words += [word, "none" if value is None else str(value)]
    return words
