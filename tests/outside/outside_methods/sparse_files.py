"""A sparse encoder with a short name: files of the Hugging Face hub."""

from __future__ import annotations

from rnnreranker.plugins import KnownModel, SparseEncoderParams


class SparseFiles(KnownModel):
    """A sparse encoder of somebody else."""

    name = "sparse-files"
    Params = SparseEncoderParams
    hub = "somebody/sparse-files"
