"""The folder of a trained scorer: written by training, loaded to score the candidates of one query at a time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.encode.dense.folder import write_encoder
from rnnreranker.encode.dense.query_encoder import PromptedTokens, QueryEncoder, load_query_encoder
from rnnreranker.encode.model_folder import SCORER_TYPE, is_scorer
from rnnreranker.encode.scorer.model import CandidateScorer
from rnnreranker.encode.scorer.params import ScorerParams

WEIGHTS = "model.safetensors"
ENCODER = "encoder"  # the folder of the transformer and its tokenizer
INNER = "encoder.transformer."  # names of the weights that stand there


class EncodedQuery(NamedTuple):
    """What a scorer reads of a query: (1, T, h) token states and (1, T) attention."""

    states: torch.Tensor
    attention: torch.Tensor


class TrainedScorer:
    """A scorer's folder, ready to score (no dropout): encode a query, then score its candidates.

    Args:
        path: a folder of `train --scorer`.
        device: "cpu" or "cuda".

    Raises:
        InputError: not such a folder, files missing or that do not fit each other.
    """

    def __init__(self, path: str | os.PathLike[str], device: str = "cpu") -> None:
        self.path, self._device = Path(path), device
        self.model, self.tokens = _load(self.path)
        self.model.to(device)

    @property
    def dimension(self) -> int:
        """d, of the documents' vectors."""
        return self.model.dimension

    def encode(self, text: str) -> EncodedQuery:
        """The query of a text."""
        with torch.no_grad():
            numbers, attention = (part.to(self._device) for part in self.tokens.pad(self.tokens.cut([text])))
            return EncodedQuery(self.model.encoder.states(numbers, attention), attention)

    def score(self, query: EncodedQuery, documents: np.ndarray) -> np.ndarray:
        """(n,) float64: the scores of n candidates, together; `documents` are their vectors, (n, d) float32."""
        with torch.no_grad():
            near = torch.from_numpy(documents).to(self._device).unsqueeze(0)
            valid = torch.ones(near.shape[:2], dtype=torch.bool, device=self._device)
            scores: np.ndarray = self.model.score(*query, near, valid)[0].double().cpu().numpy()
            return scores


def write_scorer(folder: Path, model: CandidateScorer, tokens: PromptedTokens, max_length: int) -> None:
    """Write config.json, model.safetensors (scorer, projection, inverse temperature) and encoder/.

    Args:
        folder: that is there.
        max_length: tokens at which queries are cut.
    """
    from safetensors.torch import save_file

    dense = model.encoder
    hidden = int(dense.transformer.config.hidden_size)  # type: ignore[union-attr, arg-type]
    alone = QueryEncoder(dense.transformer, dense.pooling, dense.normalize, hidden)  # a projection is ours to keep
    alone.truncate_dim = dense.truncate_dim
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
    (folder / ENCODER).mkdir(parents=True)
    write_encoder(folder / ENCODER, alone, tokens, max_length)
    save_file(state, str(folder / WEIGHTS))
    write_json(folder / "config.json", config)


def _load(folder: Path) -> tuple[CandidateScorer, PromptedTokens]:
    """The model of a folder, without dropout, and what makes tokens of queries."""
    from safetensors.torch import load_file

    if not is_scorer(folder):
        raise InputError(f"{folder}: no scorer; expected a folder of python -m rnnreranker.train --scorer")
    config = read_json(folder / "config.json")
    try:
        params, dimension = ScorerParams.of(config["scorer"]), int(config["dimension"])
        encoder, tokens, _ = load_query_encoder(
            str(folder / ENCODER), dimension, pooling=config["pooling"], normalize=config["normalize"]
        )
        model = CandidateScorer(encoder, dimension, params)
        state = load_file(str(folder / WEIGHTS))
        keys = model.load_state_dict(state, strict=False)
    except InputError as error:
        said = str(error) if str(folder) in str(error) else f"{folder / 'config.json'}: {error}"
        raise InputError(said) from None
    except Exception as error:  # what libraries raise on settings and weights of another form has no bounds
        reason = f"{type(error).__name__} {error}".strip().split("\n")[0][:200]
        raise InputError(f"{folder}: cannot be loaded as a scorer ({reason}); train it again") from None
    lost = [name for name in keys.missing_keys if not name.startswith(INNER)]
    if lost or keys.unexpected_keys:
        raise InputError(f"{folder / WEIGHTS}: does not fit config.json ({(lost + keys.unexpected_keys)[0]})")
    return model.eval(), tokens
