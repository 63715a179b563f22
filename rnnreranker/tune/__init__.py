"""Tuning: which parameters suit a query set, and what that is worth on queries the search has not seen."""

from rnnreranker.tune.contexts import Contexts
from rnnreranker.tune.objective import Objective
from rnnreranker.tune.space import Space
from rnnreranker.tune.study import Study, search

__all__ = ["Contexts", "Objective", "Space", "Study", "search"]
