"""What a rehearsal shortens in a plan's own commands: trainings; and what a miniature does not need."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rnnreranker.base.method import find
from rnnreranker.base.settings import Params, hints_of, setting
from rnnreranker.base.written_form import Written
from rnnreranker.regress.plans.plan import Plan
from rnnreranker.regress.plans.step import Step

WIDTH = 16  # numbers of a token's vector, half of what models of miniatures have


@dataclass(frozen=True)
class Miniature(Params):
    """How small a rehearsal is."""

    documents: int = setting(600, "documents of every collection", at_least=50)
    topics: int = setting(40, "topics of every set", at_least=10)
    steps: int = setting(2, "steps of every training", at_least=1)


def shortened(plan: Plan, size: Miniature) -> Plan:
    """The same plan on miniatures: commands in which trainings take `size.steps` steps.

    Indexes of any number of documents are those of the spec, and no step says what it needs.
    """
    indexes = tuple(replace(entry, count=None, needs={}) for entry in plan.spec.indexes)
    steps = tuple(replace(step, argv=_argv(step, size), needs={}) for step in plan.steps)
    sets = tuple(replace(entry, needs={}) for entry in plan.query_sets)
    return replace(plan, spec=replace(plan.spec, indexes=indexes, needs={}), query_sets=sets, steps=steps)


def _argv(step: Step, size: Miniature) -> tuple[str, ...]:
    """The words of a command.

    >>> from pathlib import Path
    >>> _argv(Step("train", ("--model", "cross:epochs=2,depth=9", "--device", "auto"), Path("m")), Miniature(steps=3))
    ('--model', 'cross:epochs=2,depth=9,max_steps=3,evaluate_every=3', '--device', 'auto')
    """
    argv = list(step.argv)
    if step.module == "train":
        if "--model" not in argv:
            argv = ["--model", "query", *argv]
        where = argv.index("--model") + 1
        form = Written.read(argv[where])
        own = {"max_steps": size.steps, "evaluate_every": size.steps}
        if "dimension" in hints_of(find("trained-model", form.name).Params):
            own["dimension"] = WIDTH  # that of a published preset is more than models of miniatures have
        argv[where] = str(replace(form, params={**form.params, **own}))
    return tuple(argv)
