"""The encoder of a part on a GPU: compared, before it encodes documents, with the same on the processor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rnnreranker.base.command import counted, say
from rnnreranker.base.device import Devices, least_cosine
from rnnreranker.base.errors import InputError
from rnnreranker.encode.base import TextEncoder
from rnnreranker.encode.graph import cosine_of

TRIED = 16  # texts that both encode


def encoder_on(
    devices: Devices, usual: TextEncoder, settings: dict[str, Any], texts: Sequence[str]
) -> tuple[TextEncoder, dict[str, Any]]:
    """An encoder on devices, and what an index says of it: device, type, the lowest cosine to the processor's rows.

    Args:
        usual: the same on the processor; settings: what it is loaded with.
        texts: of documents, from the shortest to the longest of which `TRIED` are encoded by both.

    Raises:
        InputError: a cosine below `least_cosine`; as `TextEncoder.load`.
    """
    encoder = type(usual).load(usual.name, devices=devices, **settings)
    tried = _sample(texts)
    lowest = cosine_of(encoder.rows(tried), usual.rows(tried)) if tried else 1.0
    least = least_cosine(devices.dtype, settings.get("dtype"))
    if not lowest >= least:
        raise InputError(
            f"{usual.name} on {devices}: the lowest cosine of {counted(len(tried), 'text')} to what the processor "
            f"computes is {lowest:.5f}; expected {least:g} or more: compute in float32, or on the processor"
        )
    say(f"{usual.name} on {devices}: lowest cosine of {counted(len(tried), 'text')} to the processor's {lowest:.6f}")
    return encoder, {"device": ",".join(devices.names), "dtype": devices.dtype, "cosine": round(lowest, 6)}


def _sample(texts: Sequence[str]) -> list[str]:
    ordered = sorted({text for text in texts if text.strip()}, key=lambda text: (len(text), text))
    if len(ordered) <= TRIED:
        return ordered
    return [ordered[number * (len(ordered) - 1) // (TRIED - 1)] for number in range(TRIED)]
