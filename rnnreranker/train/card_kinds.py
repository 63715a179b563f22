"""What the model cards of every kind of model say: what it is, its head, and Python that opens and shares it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

OURS = "rnnreranker"  # the library of models that it alone opens
PUSH = 'model.push_to_hub("organisation/name")'
UPLOAD = """from huggingface_hub import upload_folder

upload_folder(repo_id="organisation/name", folder_path="{folder}")"""


@dataclass(frozen=True)
class CardKind:
    """What cards of a kind of model say.

    Attributes:
        what: the model is.
        library, pipeline, tags: of the head; pipeline "" = none.
        opens: Python that opens and uses the folder `{folder}`; pushes: that puts it on the hub.
    """

    what: str
    library: str
    pipeline: str
    tags: tuple[str, ...]
    opens: str
    pushes: str = PUSH


def _of_sentence_transformers(what: str, pipeline: str, tags: Sequence[str], name: str, use: str) -> CardKind:
    opens = f'from sentence_transformers import {name}\n\nmodel = {name}("{{folder}}")\n{use}'
    return CardKind(what, "sentence-transformers", pipeline, ("sentence-transformers", *tags), opens)


_QUERIES = 'queries = model.encode_query(["how do plants make sugar"])\n'
_BOTH = _QUERIES + 'documents = model.encode_document(["Leaves turn light into sugar."])\n'
_SCORES = _BOTH + "print(model.similarity(queries, documents))"
QUERY = _of_sentence_transformers(
    "query encoder, for the documents' vectors of the index that it was trained with",
    *("sentence-similarity", ("sentence-similarity", "feature-extraction", "dense")),
    *("SentenceTransformer", _QUERIES + "print(queries.shape)"),
)
DUAL = _of_sentence_transformers(
    "dual encoder of queries and documents",
    *("sentence-similarity", ("sentence-similarity", "feature-extraction", "dense")),
    *("SentenceTransformer", _SCORES),
)
SPARSE = _of_sentence_transformers(
    "sparse encoder (SPLADE)",
    *("feature-extraction", ("sparse-encoder", "sparse", "splade")),
    *("SparseEncoder", _SCORES),
)
SPARSE_DOCUMENTS = _of_sentence_transformers(
    "sparse encoder of documents (SPLADE-doc): a query is its words, 1 each",
    *("feature-extraction", ("sparse-encoder", "sparse", "splade")),
    *("SparseEncoder", 'documents = model.encode_document(["Leaves turn light into sugar."])\nprint(documents.shape)'),
)
LATE = _of_sentence_transformers(
    "late-interaction encoder (ColBERT)",
    *("feature-extraction", ("multi-vector", "colbert", "late-interaction")),
    *("MultiVectorEncoder", _SCORES),
)
CROSS = _of_sentence_transformers(
    "cross-encoder",
    *("text-ranking", ("cross-encoder", "reranker")),
    *("CrossEncoder", 'print(model.predict([("how do plants make sugar", "Leaves turn light into sugar.")]))'),
)
MASKED = CardKind(
    "masked language model of a collection's texts",
    *("transformers", "fill-mask", ("fill-mask",)),
    "from transformers import AutoModelForMaskedLM, AutoTokenizer\n\n"
    'model, tokenizer = (one.from_pretrained("{folder}") for one in (AutoModelForMaskedLM, AutoTokenizer))',
    PUSH + '\ntokenizer.push_to_hub("organisation/name")',
)
SCORER = CardKind(
    "scorer of all candidates of a query together",
    *(OURS, "text-ranking", ("reranker",)),
    """from rnnreranker import open_index

run = open_index("my-index").rerank("run.txt", "scorer:model={folder}", topics="topics.tsv")""",
    UPLOAD,
)
TERM_SCORER = CardKind(
    "scorer of words in their context",
    *(OURS, "", ("term-weighting",)),
    """from rnnreranker import make_labels

method = "term-weight:weights=scorer,scorer={folder}"
labels = make_labels("run.txt", "qrels.txt", "my-index", method=method, topics="topics.tsv")""",
    UPLOAD,
)
