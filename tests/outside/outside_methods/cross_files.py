"""A cross-encoder with a short name: files of the Hugging Face hub."""

from __future__ import annotations

from rnnreranker.plugins import CrossEncoderParams, KnownModel


class CrossFiles(KnownModel):
    """A cross-encoder of somebody else."""

    name = "cross-files"
    Params = CrossEncoderParams
    hub = "somebody/cross-files"
