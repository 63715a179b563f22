"""Parameters of soft labels: from scores of candidates to a target distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, setting

READ = {"share": ("share", "confident"), "threshold": ("confident",)}  # setting → values of `mass` that read it


@dataclass(frozen=True)
class LabelParams(Params):
    """From similarities of candidates and positives to a distribution (paper 000, Algorithm 1).

    `compat` chooses the order of steps:

    - "paper": normalise all candidates; multiply positives by `boost`; keep positives, and of the others those among
      the `n_max` highest scores before the boost with values from `include_level` on; softmax.
    - "coder", of the published models: drop values below `include_level`; keep the `n_max` highest; normalise these;
      round to float16; multiply the highest labels, as many as there are positives, by `boost`; drop values below
      `include_level` again; softmax.

    `mass` "share" and "confident": targets are (1 - share) times hard labels plus share times the method's targets of
    other candidates, normalised; "confident" counts only those with a similarity from `threshold` on. Without others
    labels are hard.

    Raises:
        InputError: values out of range, in one message; a setting that another leaves without effect.

    >>> LabelParams(boost=0.5)
    Traceback (most recent call last):
    rnnreranker.base.errors.InputError: boost=0.5: expected a finite number >= 1
    """

    section: ClassVar[str] = "labels"

    aggregate: Literal["mean", "max", "sum"] = setting("mean", "over several positives, each times its grade")
    redistribute: Literal["radically", "fully"] = setting(
        "radically", "labels are the scores, or positives keep 1 - rho of their grade and the others share the rest"
    )
    rho: float = setting(
        0.2, "with redistribute=fully, the share of the grades that goes to the others", at_least=0, at_most=1
    )
    normalization: Literal["maxmin", "std", "max", "maxminmax", "none"] = setting(
        "maxmin", "f_n: what scores go through before the softmax"
    )
    boost: float = setting(1.222, "b: what the positives' values are multiplied by", at_least=1)
    n_max: int | None = setting(4, "candidates that get probability, from the highest on", at_least=1)
    include_level: float | None = setting(None, "values below it get no probability")
    temperature: float = setting(1.0, "of the softmax: values are divided by it", above=0)
    mass: Literal["own", "evidence", "share", "confident"] | None = setting(
        None,
        "probability that leaves the positives: by the method itself, as of evidence (default of uniform alone), a "
        "share, or a share to candidates above a threshold alone",
    )
    share: float | None = setting(
        None,
        "with mass=share or confident, what leaves the positives; none: learnt from judgements",
        at_least=0,
        at_most=1,
    )
    threshold: float | None = setting(
        None, "with mass=confident, the similarity from which on a candidate takes probability; none: learnt"
    )
    compat: Literal["paper", "coder"] = setting("paper", "the paper's order of steps, or that of the published models")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, masses in READ.items():
            if self.mass not in masses and (value := getattr(self, name)) is not None:
                raise InputError(f"{name}={value}: has no effect without mass={' or '.join(masses)}")
        if self.redistribute != "fully" and self.rho != LabelParams.rho:
            raise InputError(f"rho={self.rho}: has no effect without redistribute=fully")


LabelParams.presets = {  # paper 000, Table 6, b with the digits of the published settings
    "coder-tas-b": LabelParams(boost=1.2217071730607665, n_max=4, include_level=0.1, compat="coder"),
    "coder-cocondenser": LabelParams(normalization="std", boost=1.525, n_max=32, include_level=0.1, compat="coder"),
}


def unlearnt(params: LabelParams) -> list[str]:
    """Those of `share` and `threshold` that must be learnt."""
    return [name for name, masses in READ.items() if params.mass in masses and getattr(params, name) is None]
