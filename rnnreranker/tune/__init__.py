"""Tuning: which parameters suit a query set, and what that is worth on queries the search has not seen."""

from rnnreranker.tune.kept_contexts import Contexts
from rnnreranker.tune.objective import Objective
from rnnreranker.tune.space import Space
from rnnreranker.tune.trials import Study, search

__all__ = ["Contexts", "Objective", "Space", "Study", "search"]
