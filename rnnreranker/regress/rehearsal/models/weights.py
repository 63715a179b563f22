"""Configurations and weights of miniatures: small, drawn, the same every time, in the files that the real ones have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rnnreranker.base.files import fingerprint, write_json

WIDTH, LAYERS, HEADS = 32, 2, 2
SMALL: dict[str, Any] = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 2 * WIDTH,
}
SPREAD = 0.2  # of drawn weights: with the usual .02 all texts would have about one vector
RARE = -3.0  # bias of a word in a masked-language model: few words of a text are above 0, as in real ones
SAFE, BIN = "model.safetensors", "pytorch_model.bin"


def draw(of: Any, config: Any, name: str) -> Any:
    """A model of a class of transformers, its weights drawn as its name says."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(fingerprint("miniature", name)[:8], 16))
        usual, config.initializer_range = config.initializer_range, SPREAD
        model = of(config).eval()
        config.initializer_range = usual
    return model


def rare_words(bias: Any) -> None:
    """Make a word of a masked-language model rare, whatever the text."""
    import torch

    with torch.no_grad():
        bias.fill_(RARE)


def write_weights(folder: Path, weights: dict[str, Any], file: str = SAFE, zipped: bool = True) -> None:
    """Write weights under their names.

    Args:
        file: `model.safetensors` or `pytorch_model.bin`.
        zipped: a .bin as torch writes them since 1.6, or as before.
    """
    import torch
    from safetensors.torch import save_file

    own = {name: tensor.detach().clone().contiguous() for name, tensor in weights.items()}
    if file == SAFE:
        save_file(own, folder / SAFE, metadata={"format": "pt"})
    else:
        torch.save(own, folder / BIN, _use_new_zipfile_serialization=zipped)


def write_config(folder: Path, config: Any, architecture: str | None, **more: Any) -> None:
    """Write `config.json` as it was published: with the class that wrote the weights, or without."""
    said = {key: value for key, value in config.to_diff_dict().items() if key not in ("architectures", "dtype")}
    said["model_type"] = config.model_type
    write_json(folder / "config.json", {**({"architectures": [architecture]} if architecture else {}), **said, **more})


def old_names(weights: dict[str, Any]) -> dict[str, Any]:
    """The weights with `gamma` and `beta` of layer norms, as TensorFlow's conversions of 2018 have them."""
    renamed = {}
    for name, tensor in weights.items():
        before, dot, last = name.rpartition(".")
        if before.endswith("LayerNorm"):
            last = {"weight": "gamma", "bias": "beta"}[last]
        renamed[f"{before}{dot}{last}"] = tensor
    return renamed


def inner_products(weights: dict[str, Any], norm: str, about: float) -> None:
    """Scale the last layer norm, so that a vector's inner product with itself is `about` that."""
    for end in ("weight", "bias"):
        weights[f"{norm}.{end}"] = weights[f"{norm}.{end}"] * (about / WIDTH) ** 0.5
