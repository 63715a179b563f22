"""Damages that any file can take: bytes flipped, cut, dropped, repeated, put in; values of JSON and YAML changed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

PIECES = [b"\0", b"\t", b" ", b"\r", b"\n", b"\xff", b"\xc2\xa0", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\x1b[31m", b"nan"]
PIECES += [b"0", b"-", b"1e999", b"9" * 400, b"0x1F", b"1_0", b"1:30", b"yes", b"[" * 2000, b"{", b'"', b"\\ud800"]
PIECES += [b"\xf0\x9f\x92\xa9", b"!", b"&a", b"*a", b"---\n", b"\xff" * 8, b"\0" * 8, b"\xff" * 7 + b"\x7f", b"\x85"]
VALUES: list[Any] = [None, True, False, 0, -1, 1, 2**31, 2**63, 10**299, 10**400, 1e308, 0.5, -0.0, 1e-320]
VALUES += [float("nan"), float("inf"), "", "x", "\x1b[31m", "\u2028", "é💩", "1", "nan", "../../x", [], {}, [1], ["a"]]
VALUES += [{"a": 1}, [[]], "a" * 5000]


def damage_file(rng: Random, path: Path) -> None:
    """Damage a file in place."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        inner = rng.random() < 0.3
        content = gzip.compress(damaged(rng, gzip.decompress(content)), mtime=0) if inner else damaged(rng, content)
    elif path.suffix in (".json", ".yaml", ".jsonl") and rng.random() < 0.5:
        content = _with_other_values(rng, content, path.suffix)
    else:
        content = damaged(rng, content)
    path.write_bytes(content)


def damaged(rng: Random, content: bytes) -> bytes:
    """The content after one to four damages."""
    for _ in range(rng.randint(1, 4)):
        place = rng.randint(0, len(content))
        end = min(len(content), place + rng.randint(0, 12))
        kind = rng.choice(["flip", "flip", "over", "cut", "drop", "repeat", "insert", "swap", "end"])
        if kind == "flip" and place < len(content):
            flipped = bytes([content[place] ^ (1 << rng.randint(0, 7))])
            content = content[:place] + flipped + content[place + 1 :]
        elif kind == "over":
            piece = rng.choice(PIECES) if rng.random() < 0.5 else rng.randbytes(rng.randint(1, 8))
            content = content[:place] + piece + content[place + len(piece) :]
        elif kind == "cut":
            content = content[:place]
        elif kind == "drop":
            content = content[:place] + content[end:]
        elif kind == "repeat":
            content = content[:end] + content[place:end] * rng.randint(1, 3) + content[end:]
        elif kind == "insert":
            piece = rng.choice(PIECES) if rng.random() < 0.7 else rng.randbytes(rng.randint(1, 4))
            content = content[:place] + piece + content[place:]
        elif kind == "swap":
            content = content[end:] + content[:end]
        elif kind == "end":
            content += content
    return content


def _with_other_values(rng: Random, content: bytes, suffix: str) -> bytes:
    """JSON or YAML that parses, with one value, key or level changed, or a key there twice."""
    import yaml

    lines = [line for line in content.decode().split("\n") if line.strip()]
    if suffix == ".jsonl":
        at = rng.randrange(len(lines))
        lines[at] = _text(rng, _changed(rng, json.loads(lines[at])))
        return ("\n".join(lines) + "\n").encode(errors="surrogatepass")
    if suffix == ".json":
        return _text(rng, _changed(rng, json.loads(content))).encode(errors="surrogatepass")
    value = _changed(rng, yaml.safe_load(content))
    try:
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=rng.random() < 0.5).encode()
    except (ValueError, yaml.YAMLError):
        return content


def _changed(rng: Random, value: Any) -> Any:
    """The value with one place of it changed; deeper places are as likely as shallow ones."""
    if isinstance(value, (dict, list)) and value and rng.random() < 0.75:
        if isinstance(value, dict):
            key = rng.choice(list(value))
            if rng.random() < 0.2:
                return {**{other: one for other, one in value.items() if other != key}, **_moved(rng, key, value[key])}
            return {**value, key: _changed(rng, value[key])}
        at = rng.randrange(len(value))
        if rng.random() < 0.2:
            return value[:at] + value[at + 1 :] if rng.random() < 0.5 else [*value, value[at]]
        return [*value[:at], _changed(rng, value[at]), *value[at + 1 :]]
    if type(value) in (int, float) and rng.random() < 0.4:
        return rng.choice([value + 1, value - 1, value * 2, -value, float(value), str(value), value * 10**6])
    return rng.choice(VALUES)


def _moved(rng: Random, key: str, value: Any) -> dict[str, Any]:
    return rng.choice([{}, {f"{key}x": value}, {"": value}, {key.upper(): value}, {key: value, f"{key} ": value}])


def _text(rng: Random, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    if isinstance(value, dict) and value and rng.random() < 0.1:  # the first key again, at the end
        key = next(iter(value))
        text = f"{text[:-1]}, {json.dumps(key)}: {json.dumps(value[key])}}}"
    return text
