"""What rerankers say of a query's candidates, beside the similarities: teachers that know the query."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base import command
from rnnreranker.base.arguments import flag
from rnnreranker.base.errors import refuse
from rnnreranker.base.method import Inputs, find, methods
from rnnreranker.base.settings import typed_name
from rnnreranker.data.fields import add_documents_flags, asked_fields
from rnnreranker.methods.rerank.colbert_prf import ColbertPrfParams, ColbertPrfReranker

if TYPE_CHECKING:
    from rnnreranker.lab.recover.similarities import Candidates, Scores
    from rnnreranker.methods.rerank import Reranker
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.search.indexes import Index

COLLECTIVE = {"collective": False, "collective-positives": True}  # whether the visible positive gives feedback


def known() -> list[str]:
    """The names of what can stand beside: rerankers that read no scores of a run, and the collective teacher."""
    found = [name for name, kind in methods("reranker").items() if "run scores" not in kind.needs]
    return [*COLLECTIVE, *(name for name in found if name != ColbertPrfReranker.name)]


def kind_of(name: str) -> Any:
    """The class of the reranker of a name of `known`."""
    return ColbertPrfReranker if name in COLLECTIVE else find("reranker", name)


def needs_of(names: Sequence[str]) -> frozenset[str]:
    """What some of `known` need together."""
    return frozenset[str]().union(*(kind_of(name).needs for name in names))


def add_beside(parser: argparse.ArgumentParser) -> None:
    """The flags --beside, --beside-model, --documents, --fields and those of the collective teacher."""
    group = parser.add_argument_group("teachers beside the similarities")
    text = (
        "rank by these, too: rerankers, the collective teacher, and the same with the visible positive as its first "
        "feedback"
    )
    listed = ", ".join(known())
    group.add_argument("--beside", nargs="+", choices=known(), default=[], metavar="NAME", help=f"{text}: {listed}")
    text = "of --beside: name, folder or hub id of a cross-encoder, several joined by commas, folder of a scorer"
    group.add_argument("--beside-model", metavar="MODEL", help=text)
    text = "texts for --beside, where the index has none: file, ir_datasets id, `pydoc`"
    add_documents_flags(group, text)
    command.add_dataclass_flags(group, ColbertPrfParams, {"context"})


def check_beside(args: argparse.Namespace) -> None:
    """Look, before any work, that the flags go together.

    Raises:
        InputError: a name twice, a model for none or for several of them, or none for one that needs it, texts or
            settings for nobody.
    """
    names = args.beside
    asked_fields(args.documents, args.fields)
    taking = [name for name in names if kind_of(name).model_setting]
    of = [field for field in dataclasses.fields(ColbertPrfParams) if field.name != "context"]
    typed = [flag(typed_name(field)) for field in of if getattr(args, typed_name(field)) is not None]
    refuse(
        (len(set(names)) < len(names), f"--beside {' '.join(names)}: expected different names"),
        (args.beside_model and not taking, "--beside-model goes with a --beside that computes with a model"),
        (taking and not args.beside_model, f"--beside {' '.join(taking)} needs --beside-model"),
        (len(taking) > 1, f"--beside {' '.join(taking)}: one of them at a time, as one model is given"),
        (args.documents and "texts" not in needs_of(names), "--documents goes with a --beside that reads texts"),
        (typed and not set(names) & set(COLLECTIVE), f"{', '.join(typed)}: of --beside {' or '.join(COLLECTIVE)}"),
    )


@dataclass(frozen=True)
class Beside:
    """The scores of some rerankers; `positives`: whether a visible positive gives feedback."""

    rerankers: Mapping[str, Reranker]

    def of(self, found: Candidates) -> Scores:
        """Name → (R, n) float64, of candidates; the same for every positive, but where it gives feedback.

        Raises:
            InputError: candidates without what a reranker needs of them.
        """
        scores = {}
        for name, reranker in self.rerankers.items():
            query, candidates = reranker.alone(found.qid, found.docids)
            if COLLECTIVE.get(name):
                assert isinstance(reranker, ColbertPrfReranker)
                every = [reranker.scores_knowing(query, candidates, [place]) for place in found.places.tolist()]
                scores[name] = np.array(every)
            else:
                own = reranker.scores(query, candidates)
                scores[name] = np.broadcast_to(own, (len(found.places), len(own)))
        return scores

    def describe(self) -> dict[str, Any]:
        """Name → what its scores depend on besides the inputs."""
        return {name: reranker.describe() for name, reranker in self.rerankers.items()}

    def remark(self) -> str:
        """What the rerankers have to say of the candidates that they scored; empty = nothing."""
        return "; ".join(filter(None, (reranker.remark() for reranker in self.rerankers.values())))


def open_beside(
    args: argparse.Namespace, index: Index, topics: Mapping[str, str], queries: QueryVectors
) -> Beside | None:
    """The rerankers that --beside names, on the texts of `topics` and their vectors; None without any.

    Raises:
        InputError: an index without what they need, and what their constructors raise.
    """
    from rnnreranker.parts.tokens.queries import query_tokens
    from rnnreranker.search.inputs import document_texts

    if not args.beside:
        return None
    needs = needs_of(args.beside)
    inputs = Inputs(
        topics=topics,
        query_vectors=queries,
        vectors=index.vectors,
        tokens=index.token_vectors if "tokens" in needs else None,
        query_tokens=query_tokens(index.token_vectors, topics, args.threads) if "query tokens" in needs else None,
        texts=document_texts(args.documents, index, asked_fields(args.documents, args.fields))
        if "texts" in needs
        else None,
    )
    collective = ColbertPrfReranker(inputs, command.chosen(args, ColbertPrfParams), threads=args.threads)
    made: dict[str, Reranker] = {}
    for name in args.beside:
        if name in COLLECTIVE:
            made[name] = collective
            continue
        kind = find("reranker", name)
        own = kind.Params(**({kind.model_setting: args.beside_model} if kind.model_setting else {}))
        made[name] = kind(inputs, own, threads=args.threads)
    return Beside(made)
