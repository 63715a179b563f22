"""Tuning: which parameters suit a query set, and what that is worth on queries the search has not seen."""

from rnnreranker.lab.tune.kept_contexts import Contexts
from rnnreranker.lab.tune.objective import Objective
from rnnreranker.lab.tune.space import Space
from rnnreranker.lab.tune.trials import Study, search

__all__ = ["Contexts", "Objective", "Space", "Study", "search"]
