"""A late-interaction encoder with a short name: files of the Hugging Face hub."""

from __future__ import annotations

from rnnreranker.plugins import KnownModel, LateEncoderParams


class LateFiles(KnownModel):
    """A late-interaction encoder of somebody else."""

    name = "late-files"
    Params = LateEncoderParams
    hub = "somebody/late-files"
