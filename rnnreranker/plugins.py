"""What methods of another package derive from, and declare their settings with: the one stable home of these names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base import late_names

if TYPE_CHECKING:
    from rnnreranker.base.method import Inputs as Inputs
    from rnnreranker.base.settings import Params as Params
    from rnnreranker.base.settings import context_setting as context_setting
    from rnnreranker.base.settings import setting as setting
    from rnnreranker.encode.named import KnownModel as KnownModel
    from rnnreranker.encode.named import TextModel as TextModel
    from rnnreranker.encode.params import CrossEncoderParams as CrossEncoderParams
    from rnnreranker.encode.params import EncoderParams as EncoderParams
    from rnnreranker.encode.params import LateEncoderParams as LateEncoderParams
    from rnnreranker.encode.params import SparseEncoderParams as SparseEncoderParams
    from rnnreranker.labels.methods.base import ContextLabeler as ContextLabeler
    from rnnreranker.labels.methods.base import JudgedContext as JudgedContext
    from rnnreranker.labels.methods.base import Labeler as Labeler
    from rnnreranker.methods.expand.base import Expander as Expander
    from rnnreranker.methods.feedback.base import Feedback as Feedback
    from rnnreranker.methods.rerank.base import Candidates as Candidates
    from rnnreranker.methods.rerank.base import Query as Query
    from rnnreranker.methods.rerank.base import Reranker as Reranker
    from rnnreranker.methods.retrieve.base import Retriever as Retriever
    from rnnreranker.parts.base import Part as Part
    from rnnreranker.train.losses import Loss as Loss
    from rnnreranker.train.losses import log_shares as log_shares
    from rnnreranker.train.losses import mean_over as mean_over
    from rnnreranker.train.models import GroupModel as GroupModel
    from rnnreranker.train.models import TrainedModel as TrainedModel
    from rnnreranker.train.params import TrainingParams as TrainingParams
    from rnnreranker.train.request import Trained as Trained

__getattr__, __dir__ = late_names(__name__)
