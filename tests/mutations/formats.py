"""All formats, by name."""

from __future__ import annotations

from mutations import arrays, index_parts, label_files, model_files, settings_files, term_files, texts, whole_index
from mutations.format import Format

FORMATS: dict[str, Format] = {
    one.name: one
    for group in (texts, arrays, settings_files, label_files, index_parts, term_files, whole_index, model_files)
    for one in group.FORMATS
}
