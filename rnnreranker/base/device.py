"""The device and the arithmetic of models: `--device` and `--compute-dtype`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rnnreranker.base.errors import InputError, argument, brief, require
from rnnreranker.base.settings import setting

AUTO = "auto"
EXACT = "float32"
DTYPES = (EXACT, "bfloat16", "float16")
ON_DEVICES = f"of models: {AUTO}, cuda, and where none is trained cuda:0,cuda:1 or mps (default: processor)"


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
        device: cpu, cuda, cuda:1, several as cuda:0,cuda:1, mps, or `Devices`; `auto` is torch's GPU, else None.
        compute_dtype: one of `DTYPES`.

    Raises:
        InputError: unknown type, a device that torch does not have here.
        MissingDependencyError: torch is not installed.
    """
    if isinstance(device, Devices):
        return device
    if compute_dtype not in DTYPES or not isinstance(device, str | None):
        shown = f"{argument('device', brief(device))}, {argument('compute_dtype', brief(compute_dtype))}"
        raise InputError(f"{shown}: expected the name of a device, as cuda, and one of {', '.join(DTYPES)}")
    names: tuple[str, ...] = () if device is None else tuple(device.split(","))
    if names not in ((), ("cpu",)):  # every build of torch has a processor: torch need not be imported to know
        here = devices_here()
        kinds = [name.partition(":")[0] for name in here]
        names = tuple(kind for kind in kinds if kind != "cpu")[:1] if device == AUTO else names
        if strange := {*names} - {*here, *kinds}:
            others = f"torch has no device {min(strange)} here; expected some of {', '.join(here)}, or {AUTO}"
            raise InputError(f"{argument('device', device)}: {others}")
        if len({name.partition(":")[0] for name in names}) > 1 or len({*names}) < len(names):
            raise InputError(f"{argument('device', device)}: expected different devices of one kind, as cuda:0,cuda:1")
    return Devices(names or ("cpu",), compute_dtype) if names or compute_dtype != EXACT else None


@dataclass(frozen=True, kw_only=True)
class ComputesOnDevices:
    """A request with `device` and `compute_dtype`, as in `devices_of`."""

    device: str | None = setting(None, ON_DEVICES, metavar="NAME")
    compute_dtype: str = setting(EXACT, "of models there", one_of=lambda: [*DTYPES], metavar="TYPE")

    @cached_property
    def devices(self) -> Devices | None:
        """The devices of models, None = the processor; errors as `devices_of`."""
        return devices_of(self.device, self.compute_dtype)


def trained_on(device: str) -> str:
    """The device of a training, "cpu" or "cuda"; `auto` is a GPU of CUDA if there is one.

    Raises:
        InputError: another device; as `devices_of`.
    """
    devices = devices_of(device)
    name = "cpu" if devices is None else str(devices)
    if name not in ("cpu", "cuda") and device != AUTO:
        raise InputError(
            f"{argument('device', device)}: expected cpu, cuda or {AUTO}; CUDA_VISIBLE_DEVICES chooses a GPU"
        )
    return "cuda" if name == "cuda" else "cpu"


def devices_here() -> list[str]:
    """The names of torch's devices on this machine, the processor last."""
    torch = require("torch", "computing on a device", "torch")
    gpus = [f"cuda:{number}" for number in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return [*gpus, *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]


def put(model: Any, device: str, dtype: str) -> Any:
    """A module of torch on a device, its weights in the type; buffers keep theirs."""
    torch = require("torch", "computing on a device", "torch")
    model.to(device)
    for parameter in model.parameters() if dtype != EXACT else ():
        if parameter.is_floating_point():
            parameter.data = parameter.data.to(getattr(torch, dtype))
    return model


def least_cosine(*dtypes: str | None) -> float:
    """The least cosine between vectors computed in these types and in float32 on the processor."""
    return 1 - 2e-3 if {*dtypes} - {EXACT, None} else 1 - 1e-4
