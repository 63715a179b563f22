"""The device and the arithmetic of models: `--device` and `--compute-dtype`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, brief, nearest, require
from rnnreranker.base.settings import setting

AUTO = "auto"
EXACT = "float32"
DTYPES = (EXACT, "bfloat16", "float16")
NAME = re.compile(r"cpu|mps|cuda(:\d+)?")
ON_DEVICES = f"of models: cuda, cuda:0,cuda:1, mps, {AUTO} (default: processor)"
KNOWN = f"cpu, cuda, cuda:1, several as cuda:0,cuda:1, mps or {AUTO}"


@dataclass(frozen=True)
class Devices:
    """Devices of torch that share the work; dtype: of the models' weights and states."""

    names: tuple[str, ...] = ("cpu",)
    dtype: str = EXACT

    @property
    def kind(self) -> str:
        return self.names[0].partition(":")[0]

    @property
    def elsewhere(self) -> bool:
        return self.kind != "cpu"

    @property
    def of_tensors(self) -> str | None:
        """The device for float32 work on tensors; None = compiled code on the processor."""
        return self.names[0] if self.elsewhere or self.dtype == EXACT else None

    @property
    def marks(self) -> list[str]:
        """The kind and type if they change the last bits of numbers; empty for the processor in float32."""
        return [] if (self.kind, self.dtype) == ("cpu", EXACT) else [self.kind, self.dtype]

    def __str__(self) -> str:
        return ",".join(self.names) + ("" if self.dtype == EXACT else f" in {self.dtype}")


def devices_of(device: str | Devices | None, compute_dtype: str = EXACT) -> Devices | None:
    """The devices of an argument; None = the processor in float32.

    Args:
        device: one of `KNOWN`, or `Devices`; `auto` is torch's GPU, else None.
        compute_dtype: one of `DTYPES`.

    Raises:
        InputError: unknown name or type, a device that torch does not have here.
        MissingDependencyError: torch is not installed.
    """
    if isinstance(device, Devices):
        return device
    if not isinstance(device, str | None):
        raise InputError(f"{argument('device', brief(device))}: expected the name of a device, as cuda")
    if not isinstance(compute_dtype, str) or compute_dtype not in DTYPES:
        shown = argument("compute_dtype", compute_dtype if isinstance(compute_dtype, str) else brief(compute_dtype))
        raise InputError(f"{shown}: no such type; {nearest(str(compute_dtype), DTYPES)}")
    names: tuple[str, ...] = () if device is None else tuple(device.split(","))
    if device == AUTO:
        names = tuple(name.partition(":")[0] for name in devices_here() if name != "cpu")[:1]
    for name in names:
        _check(name)
    if len({name.partition(":")[0] for name in names}) > 1 or len({*names}) < len(names):
        raise InputError(f"{argument('device', device)}: expected different devices of one kind, as cuda:0,cuda:1")
    if not names and compute_dtype == EXACT:
        return None
    return Devices(names or ("cpu",), compute_dtype)


@dataclass(frozen=True, kw_only=True)
class ComputesOnDevices:
    """A request with `device` and `compute_dtype`, as in `devices_of`."""

    device: str | None = setting(None, ON_DEVICES, metavar="NAME")
    compute_dtype: str = setting(EXACT, "of models there", one_of=lambda: [*DTYPES], metavar="TYPE")

    @cached_property
    def devices(self) -> Devices | None:
        """The devices of models, None = the processor; errors as `devices_of`."""
        return devices_of(self.device, self.compute_dtype)


def one_device(device: str) -> str:
    """The first of the devices of an argument, perhaps "cpu"; errors as `devices_of`."""
    devices = devices_of(device)
    return "cpu" if devices is None else devices.names[0]


def trained_on(device: str) -> str:
    """The device of a training, "cpu" or "cuda"; `auto` is a GPU of CUDA if there is one.

    Raises:
        InputError: another device; as `devices_of`.
    """
    name = one_device(device)
    if device == AUTO:
        return name if name == "cuda" else "cpu"
    if name not in ("cpu", "cuda") or device != name:
        shown = argument("device", device)
        raise InputError(f"{shown}: trained on cpu, cuda or {AUTO}; which GPU is for CUDA_VISIBLE_DEVICES to say")
    return name


def devices_here() -> list[str]:
    """The names of torch's devices on this machine, the processor last."""
    torch = require("torch", "computing on a device", "torch")
    gpus = [f"cuda:{number}" for number in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return [*gpus, *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]


def put(model: Any, device: str, dtype: str) -> Any:
    """A module of torch on a device, its weights in the type; buffers keep theirs."""
    torch = require("torch", "computing on a device", "torch")
    model.to(device)
    if dtype != EXACT:
        for parameter in _floats(model):
            parameter.data = parameter.data.to(getattr(torch, dtype))
    return model


def least_cosine(*dtypes: str | None) -> float:
    """The least cosine between vectors computed in these types and in float32 on the processor."""
    return 1 - 2e-3 if {*dtypes} - {EXACT, None} else 1 - 1e-4


def moved(array: Any, device: str) -> Any:
    """An array of numpy as a tensor on a device; the copy to CUDA is asynchronous."""
    torch = require("torch", "computing on a device", "torch")
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.startswith("cuda") else tensor.to(device)


def _check(name: str) -> None:
    if not NAME.fullmatch(name):
        raise InputError(f"{argument('device', name)}: no name of a device; expected {KNOWN}")
    if name == "cpu":  # every build of torch has it: torch need not be imported to know
        return
    here = devices_here()
    if name not in (here if ":" in name else [one.partition(":")[0] for one in here]):
        torch = require("torch", "computing on a device", "torch")
        others = f"torch {torch.__version__} has no such device here"
        raise InputError(f"{argument('device', name)}: {others}; expected one of {', '.join(here)}")


def _floats(model: Any) -> Iterator[Any]:
    return (one for one in model.parameters() if one.is_floating_point())
