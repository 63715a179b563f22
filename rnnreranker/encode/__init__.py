"""Texts to representations: encoders of the Hugging Face world, by name, folder or hub id."""

from rnnreranker.encode.kinds import Encoder
from rnnreranker.encode.params import EncoderParams

__all__ = ["Encoder", "EncoderParams", "load_encoder"]

load_encoder = Encoder.load
