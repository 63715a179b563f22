"""A query encoder with a network on top, which scores the candidates of a query together."""

from __future__ import annotations

import torch
from torch import nn

from rnnreranker.encode.dense.query_encoder import QueryEncoder
from rnnreranker.encode.scorer.network import ScorerNetwork
from rnnreranker.encode.scorer.params import ScorerParams


class CandidateScorer(nn.Module):
    """s_c = t (<q, d_c> + phi(c)), with phi a ScorerNetwork; without `residual` s_c = t phi(c).

    Args:
        encoder: its pooled vector is q, its token states go to a decoder scorer.
        dimension: d, of the documents.
        params: of the scorer.
    """

    def __init__(self, encoder: QueryEncoder, dimension: int, params: ScorerParams) -> None:
        super().__init__()
        self.encoder, self.params, self.dimension = encoder, params, dimension
        self.scorer = ScorerNetwork(dimension, int(encoder.transformer.config.hidden_size), params)  # type: ignore

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
        """(b, N) float: scores, any value where padded; arguments as for `ScorerNetwork.forward`."""
        queries = self.encoder.pool(states, attention)
        scores: torch.Tensor = self.scorer(queries, states, attention, documents, valid)
        if self.params.residual:
            scores = scores + (documents @ queries.unsqueeze(2)).squeeze(2)
        return scores * self.inverse_temperature
