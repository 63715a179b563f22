"""jieba, loaded once: its own dictionary, no cache file in a folder that others can write, nothing on stderr."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import Any

from rnnreranker.base.errors import require
from rnnreranker.base.process.phases import phase


def chinese_words(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of jieba's words, punctuation and white space among them, so that they cover the text.

    Raises:
        MissingDependencyError: jieba is not installed.
    """
    for _, start, end in load_jieba().tokenize(text):
        yield start, end


@functools.cache
@phase("reading jieba's dictionary")
def load_jieba() -> Any:
    """jieba's segmenter of the dictionary that its package brings; what a user adds to `jieba.dt` has no part in it.

    Raises:
        MissingDependencyError: jieba is not installed.
    """
    with warnings.catch_warnings():  # of its regular expressions, and of pkg_resources
        warnings.simplefilter("ignore")
        jieba = require("jieba", "the words of Chinese texts", "'rnnreranker[zh]'")
        segmenter = jieba.Tokenizer()
        segmenter.FREQ, segmenter.total = segmenter.gen_pfdict(segmenter.get_dict_file())
        segmenter.initialized = True  # it would read a marshalled copy from the folder of temporary files
    return segmenter
