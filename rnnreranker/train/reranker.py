"""A query encoder with a scorer on top: it reranks candidates, and a folder keeps it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rnnreranker.errors import InputError
from rnnreranker.files import folder_written_whole, write_json
from rnnreranker.train.folder import write_encoder
from rnnreranker.train.params import TrainParams
from rnnreranker.train.query_encoder import QueryEncoder, Tokens, load_query_encoder
from rnnreranker.train.scorer_params import ScorerParams
from rnnreranker.train.scorers import Scorer
from rnnreranker.vectors.model_folder import SCORER_TYPE

WEIGHTS = "model.safetensors"
ENCODER = "encoder"  # the folder of the transformer and its tokenizer
INNER = "encoder.transformer."  # names of the weights that stand there


class CandidateReranker(nn.Module):
    """s_c = t (<q, d_c> + phi(c)), with phi a Scorer; without `residual` s_c = t phi(c).

    Args:
        encoder: its pooled vector is q, its token states go to a decoder scorer.
        dimension: d, of the documents.
        params: of the scorer.
    """

    def __init__(self, encoder: QueryEncoder, dimension: int, params: ScorerParams) -> None:
        super().__init__()
        self.encoder, self.params, self.dimension = encoder, params, dimension
        self.scorer = Scorer(dimension, int(encoder.transformer.config.hidden_size), params)  # type: ignore

    @property
    def inverse_temperature(self) -> torch.Tensor:
        """t, a scalar."""
        return self.encoder.inverse_temperature

    @property
    def dense(self) -> QueryEncoder:
        """What makes query vectors."""
        return self.encoder

    def score(
        self, states: torch.Tensor, attention: torch.Tensor, documents: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """(b, N) float: scores, any value where padded; arguments as for `Scorer.forward`."""
        queries = self.encoder.pool(states, attention)
        found: torch.Tensor = self.scorer(queries, states, attention, documents, valid)
        if self.params.residual:
            found = found + (documents @ queries.unsqueeze(2)).squeeze(2)
        return found * self.inverse_temperature


def write_reranker(
    path: str | os.PathLike[str], model: CandidateReranker, tokens: Tokens, max_length: int, extra: dict[str, Any]
) -> None:
    """Write config.json, model.safetensors (scorer, projection, inverse temperature) and encoder/, all or nothing.

    Args:
        path: a folder; what stands there is replaced.
        max_length: tokens at which queries are cut.
        extra: JSON documents beside the model, by file name.

    Raises:
        InputError: the folder cannot be written.
    """
    from safetensors.torch import save_file

    dense = model.encoder
    hidden = int(dense.transformer.config.hidden_size)  # type: ignore[union-attr, arg-type]
    alone = QueryEncoder(dense.transformer, dense.pooling, dense.normalize, hidden)  # a projection is ours to keep
    config = {
        "model_type": SCORER_TYPE,
        "dimension": model.dimension,
        "pooling": dense.pooling,
        "normalize": dense.normalize,
        "scorer": model.params.to_dict(),
    }
    state = {
        name: value.detach().cpu().contiguous()
        for name, value in model.state_dict().items()
        if not name.startswith(INNER)
    }
    with folder_written_whole(path) as folder:
        write_encoder(folder / ENCODER, alone, tokens, max_length, {})
        save_file(state, str(folder / WEIGHTS))
        for name, document in {"config.json": config, **extra}.items():
            write_json(folder / name, document)


def is_reranker(path: str | os.PathLike[str]) -> bool:
    """Whether a folder was written by `write_reranker`."""
    config = Path(path) / "config.json"
    return config.is_file() and _described(config).get("model_type") == SCORER_TYPE


def load_reranker(path: str | os.PathLike[str]) -> tuple[CandidateReranker, Tokens]:
    """The model of a folder, ready to score (no dropout), and what makes tokens of queries.

    Raises:
        InputError: not a folder of `write_reranker`, files missing or that do not fit each other.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(path)
    if not is_reranker(folder):
        raise InputError(f"{folder}: no scorer; expected a folder of python -m rnnreranker.train --scorer")
    config = _described(folder / "config.json")
    try:
        params, dimension = ScorerParams(**config["scorer"]), int(config["dimension"])
        encoder, tokens, _ = load_query_encoder(
            str(folder / ENCODER), dimension, TrainParams(), config["pooling"], config["normalize"]
        )
        model = CandidateReranker(encoder, dimension, params)
        state = load_file(str(folder / WEIGHTS))
        found = model.load_state_dict(state, strict=False)
    except (KeyError, TypeError, ValueError, OSError, RuntimeError, SafetensorError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error).strip().split("\n")[0][:200]
        raise InputError(f"{folder}: cannot be loaded as a scorer ({reason}); train it again") from None
    lost = [name for name in found.missing_keys if not name.startswith(INNER)]
    if lost or found.unexpected_keys:
        raise InputError(f"{folder / WEIGHTS}: does not fit config.json ({(lost + found.unexpected_keys)[0]})")
    return model.eval(), tokens


def _described(config: Path) -> dict[str, Any]:
    try:
        found = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{config}: not JSON that can be read ({error})") from None
    return found if isinstance(found, dict) else {}
