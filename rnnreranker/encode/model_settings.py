"""What a model's own files say about pooling, length and prompts, joined with what the caller says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rnnreranker.base.errors import InputError
from rnnreranker.base.files.json_files import read_json
from rnnreranker.encode.params import POOLINGS

AGAIN = "get the model again"
TextKind = Literal["query", "document"]
QUERY_PROMPTS = ("query",)
DOCUMENT_PROMPTS = ("document", "passage", "corpus")  # the names that sentence-transformers looks for


@dataclass(frozen=True)
class ModelSettings:
    """How a text becomes a vector; None = the model's files do not say."""

    pooling: str | None = None
    normalize: bool | None = None
    max_length: int | None = None
    lowercase: bool = False
    query_prompt: str = ""
    document_prompt: str = ""
    transformer: str = ""  # subfolder of the transformer
    truncate_dim: int | None = None  # numbers of a vector that are kept
    beyond: str = ""  # the module that only sentence-transformers itself can run


def read_settings(folder: Path) -> ModelSettings:
    """The settings in the files that sentence-transformers writes beside a model.

    Raises:
        InputError: a settings file that is not JSON or not of the expected form.
    """
    if not (folder / "modules.json").is_file():
        return ModelSettings()
    modules = _json(folder / "modules.json", list)
    if not all(isinstance(module, dict) and isinstance(module.get("path", ""), str) for module in modules):
        raise InputError(f"{folder / 'modules.json'}: expected an array of objects with path and type; {AGAIN}")
    pooling, normalize, beyond, transformer = None, False, "", None
    for module in modules:
        kind = str(module.get("type", "")).rsplit(".", 1)[-1]
        path = str(module.get("path", ""))
        if kind == "Transformer" and transformer is None:
            transformer = path
        elif kind == "Pooling" and pooling is None:
            pooling = _pooling(folder / path / "config.json")
            beyond = beyond or ("" if pooling else "Pooling")
        elif kind == "Normalize" and pooling is not None:
            normalize = True
        else:
            beyond = beyond or kind
    if transformer is None or pooling is None:
        beyond = beyond or "no Transformer with Pooling"
    text = _json(folder / (transformer or "") / "sentence_bert_config.json", dict, missing={})
    whole = _json(folder / "config_sentence_transformers.json", dict, missing={})
    longest, truncated = text.get("max_seq_length"), whole.get("truncate_dim")
    for name, file, value in (
        ("max_seq_length", "sentence_bert_config.json", longest),
        ("truncate_dim", "config_sentence_transformers.json", truncated),
    ):
        if value is not None and (type(value) is not int or value < 1):
            raise InputError(f"{folder / file}: {name} is no integer >= 1; {AGAIN}")
    named = whole.get("prompts") or {}
    if not isinstance(named, dict) or not all(isinstance(one, str) for one in named.values()):
        raise InputError(f"{folder / 'config_sentence_transformers.json'}: prompts are no object of texts; {AGAIN}")
    default = named.get(str(whole.get("default_prompt_name") or ""), "")
    return ModelSettings(
        pooling=pooling,
        normalize=normalize,
        max_length=longest,
        lowercase=bool(text.get("do_lower_case", False)),
        query_prompt=next((named[name] for name in QUERY_PROMPTS if named.get(name)), default),
        document_prompt=next((named[name] for name in DOCUMENT_PROMPTS if named.get(name)), default),
        transformer=transformer or "",
        truncate_dim=truncated,
        beyond=beyond,
    )


def length_of(given: int | None, limit: int, folder: Path) -> int:
    """Tokens at which texts are cut: as given, else as many as a model takes; InputError: more than it takes."""
    if given is not None and given > limit:
        raise InputError(f"max_length={given}: {folder} takes at most {limit} tokens")
    return int(given or limit)


def _pooling(path: Path) -> str | None:
    """The one pooling mode of a Pooling module, or None where it is another or several together."""
    config = _json(path, dict)
    if isinstance(config.get("pooling_mode"), str):
        chosen = {config["pooling_mode"]}
    else:
        chosen = {name.removeprefix("pooling_mode_") for name, on in config.items() if on is True}
        chosen.discard("include_prompt")
    names = {"mean_tokens": "mean", "cls_token": "cls", "max_tokens": "max"}
    modes = [names.get(mode, mode) for mode in chosen]
    if len(modes) != 1 or modes[0] not in POOLINGS or config.get("include_prompt", True) is not True:
        return None
    return modes[0]


def _json(path: Path, form: type, missing: Any = None) -> Any:
    if missing is not None and not path.is_file():
        return missing
    value = read_json(path, "settings file of the model", AGAIN)
    if not isinstance(value, form):
        raise InputError(f"{path}: expected a JSON {'object' if form is dict else 'array'}; {AGAIN}")
    return value
