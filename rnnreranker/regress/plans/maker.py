"""The steps of conditions and of studies and the like, with those of what they need."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rnnreranker.base.arguments import flag
from rnnreranker.base.method import find
from rnnreranker.base.written_form import Written
from rnnreranker.regress.plans.model_steps import ModelSteps
from rnnreranker.regress.plans.step import ON_GPU, run_files, work_file
from rnnreranker.regress.specs.fields import needs_of
from rnnreranker.regress.specs.methods import (
    MODEL_OPTIONS,
    MODULES,
    beside_parts,
    beside_uses,
    flags_of,
    has_context,
    models_in,
    option_words,
    parts_read,
    with_folders,
)
from rnnreranker.regress.specs.spec import Condition, IndexEntry, QuerySet, Work, planned


class Maker(ModelSteps):
    """Steps so far, with those of conditions and works."""

    def _index_of(self, condition: Condition, index: IndexEntry) -> tuple[str, list[Path]]:
        """The index with what a condition reads of it."""
        return self.index_with(index, set().union(*(parts_read(kind, use) for _, kind, use in condition.uses())))

    def condition(self, condition: Condition, query_set: QuerySet) -> list[Path]:
        """The run files of a condition on a query set, after the steps that make them; none for what is planned."""
        if planned(self.spec, condition):
            return []
        if given := self.published.get((query_set.id, condition.id)):
            return [given]
        paths = run_files(self.spec, self.folder, condition, query_set)
        if condition.published or set(paths) <= self.there:
            return paths
        last = ["--hits", str(self.spec.hits), "--tag", condition.id]
        needs = condition.needs.get(query_set.id) or {}
        before = [self.condition(self.spec.condition(name), query_set)[0] for name in condition.of]
        if condition.fuse:
            argv = [*map(str, before), "--method", str(condition.fuse), *last]
            self.add("fuse", [*argv, "--output", str(paths[0])], paths[0], before, needs)
            return paths
        if condition.aggregate:
            argv = [str(before[0]), "--aggregate", str(condition.aggregate), *last, "--output", str(paths[0])]
            self.add("fuse", argv, paths[0], before, needs)
            return paths
        index = self.spec.index(condition.index)
        name, inputs = self._index_of(condition, index)
        encoder = self.encoder(index)
        if condition.model:
            trained = self.model(condition.model)
            encoder, inputs = ["--encoder", str(trained)], [*inputs, trained]
        argv, uses = ["--index", name, "--topics", query_set.topics], list[Written]()
        argv += ["--remove-query"] if query_set.remove_query else []
        if condition.retrieve:
            use, named = self.resolved(condition.retrieve)
            inputs = [*inputs, *named]
            argv += self.retrieval(use, encoder)
            argv += ["--prf", str(condition.prf)] if condition.prf else []
        elif condition.expand:
            argv += [*encoder, "--run", str(before[0]), "--expand", str(condition.expand), "--rerank", "none"]
        else:
            resolved = [self.resolved(use) for use in condition.rerank]
            uses = [use for use, _ in resolved]
            inputs = [*inputs, *(folder for _, named in resolved for folder in named)]
            argv += [*encoder, "--run", str(before[0])]
            if needs.get("gpu_hours") and any(find("reranker", use.name).takes_device for use in uses):
                argv += ON_GPU
        for output, context in zip(paths, condition.contexts or [None], strict=True):
            rerank = [word for use in uses for word in ("--rerank", str(_with_context(use, context)))]
            words_ = [*argv, *rerank, *last, "--output", str(output)]
            self.add("search", words_, output, [*inputs, *before], needs_of([self.first_needs(index), needs]))
        return paths

    def work(self, work: Work) -> None:
        """The step of a study, a tuning, …: its options in flags, with the files of the entries that they name."""
        options, inputs, argv = dict(work.options), [], []
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
            name, files = self.index(index, "neighbours" if of_graph or options.get("from") == "both" else "")
            for stage in options.get("first_stages", ()):  # a study retrieves by itself
                files += [file for file in self.index_for(Written.read(stage), index)[1] if file not in files]
            for part in sorted(beside_parts(work.options)):
                files += [file for file in self.index(index, part)[1] if file not in files]
            argv, inputs = ["--index", name, *argv], [*inputs, *files]
        if "beside" in options:
            resolved = [self.resolved(use) for use in beside_uses(work.options)]
            inputs = [*inputs, *(folder for _, named in resolved for folder in named)]
            options["beside"] = [str(use) for use, _ in resolved]
        for key in [key for key in MODEL_OPTIONS if key in options]:
            inputs = [*inputs, *map(self.model, models_in(options[key]))]
            options[key] = with_folders(options[key], self.model)
        output = work_file(self.spec, self.folder, work)
        argv += [word for key, value in options.items() for word in option_words(key, value)]
        argv += ON_GPU if work.needs.get("gpu_hours") and ON_GPU[0] in flags_of(module) else []
        argv += ["--record" if "--record" in flags_of(module) else "--output", str(output)]
        self.add(module, argv, output, inputs, work.needs)


def _with_context(use: Written, context: int | None) -> Written:
    """A reranker with another context, where it has one."""
    if context is None or not has_context(use):
        return use
    return replace(use, params={**use.params, "context": context})
