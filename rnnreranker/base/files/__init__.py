"""How files are read and written: whole or not at all, with one line for what goes wrong."""

from rnnreranker.base.files.atomic import (
    behind_links,
    cache_home,
    check_writable,
    folder_written_whole,
    put_folder,
    write_atomically,
    write_json,
)
from rnnreranker.base.files.contents import file_digest, files_digest, fingerprint
from rnnreranker.base.files.reading import (
    check_no_nul,
    first_line,
    open_bytes,
    read_bytes,
    read_lines,
    read_text,
    rereadable,
)

__all__ = [
    "behind_links",
    "cache_home",
    "check_no_nul",
    "check_writable",
    "file_digest",
    "files_digest",
    "fingerprint",
    "first_line",
    "folder_written_whole",
    "open_bytes",
    "put_folder",
    "read_bytes",
    "read_lines",
    "read_text",
    "rereadable",
    "write_atomically",
    "write_json",
]
