"""Specs of earlier forms written as they are today."""

from rnnreranker.regress.upgrade.spec_file import upgrade

__all__ = ["upgrade"]
