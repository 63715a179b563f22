"""What sources use besides records: tables of this project's own collections, pictures, pages of tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from page_data.diversity import METHODS as DIVERSITY
from page_data.diversity import StageLine, diversity
from page_data.first_stages import METHODS, StageTable, stage_table
from page_data.forecasts import Forecast, cases, forecasts
from page_data.judged_twice import decided, judged_twice
from page_data.learnt_limit import leave_one_out
from page_data.method_table import method_tables
from page_data.pictures import write_pictures
from page_data.rivals import Rival, rivals
from page_data.sizes import Sizes, amount, cell
from page_data.sizes import sizes as computed_sizes
from page_data.study_table import (
    KINDS,
    against,
    arms_table,
    differences,
    distances_table,
    picture,
    rises,
    study_table,
)
from page_data.table_pages import write_tables
from rnnreranker.lab.diagnose.verdict import HELD_OUT, LIKELY, verdict
from rnnreranker.regress.records import Figures
from rnnreranker.rnn import RnnParams

PICTURE = re.compile(r"[\w-]+\.svg")  # the name of a file that a page shows


def names(figures: Figures) -> dict[str, Any]:
    """What a source can use."""

    def first_stages(name: str) -> StageTable:
        """A table of methods over first stages."""
        return stage_table(figures, name)

    def forecasts_on_record() -> list[Forecast]:
        """Diagnoses and what followed."""
        return forecasts(figures)

    def diversity_lines() -> list[StageLine]:
        """What methods do to how alike the first ten are."""
        return diversity(figures)

    def sizes() -> Sizes:
        """What larger collections would take."""
        return computed_sizes(figures)

    def rivals_on_record() -> dict[str, list[Rival]]:
        """Encoder → systems beside the fusion of BM25 and dense."""
        return rivals(figures)

    own = [rivals_on_record, sizes, amount, cell, method_tables, first_stages, diversity_lines]
    own += [forecasts_on_record, cases, leave_one_out, verdict]
    own += [decided, judged_twice, study_table, arms_table, distances_table, against, differences, rises, picture]
    titles = {"study_kinds": KINDS, "stage_methods": METHODS, "diversity_methods": DIVERSITY, "likely_limit": LIKELY}
    titles |= {"defaults": RnnParams(), "held_out_forecasts": HELD_OUT}
    return {function.__name__: function for function in own} | titles


def write_more(sources: Path, docs: Path, figures: Figures, names: Mapping[str, Any]) -> list[Path]:
    """Write the pages of tables and the pictures; the files written."""
    tables = write_tables(sources, docs, names)
    texts = [path.read_text(encoding="utf-8") for path in [*docs.glob("*.md"), *tables]]
    return [*tables, *write_pictures(figures, docs, set(PICTURE.findall(" ".join(texts))))]
