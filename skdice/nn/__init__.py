"""Networks, batches and the training loop; knows no estimator."""

from ._batching import Batch, Batcher, Draw, StepSampler, to_device
from ._chain import TagChain
from ._loading import Encoder, check_peft_config, describe_encoder
from ._modules import (
    HEAD,
    TRANSFORMER,
    Frames,
    MeanModule,
    PairModule,
    QueryModule,
    SequenceModule,
    SpanModule,
    TextModule,
    TokenModule,
)
from ._net import NotFiniteError, TextNet
from ._runtime import (
    PRECISIONS,
    RUNTIMES,
    Ranks,
    Runtime,
    autocast,
    count_processes,
    current_ranks,
    denormals_flushed,
    is_first_process,
    resolve_device,
    resolve_precision,
    seed_generators,
    seeded,
    works_on,
)
from ._train import FitProgress, NotLearningError, check_callbacks, digests_of_trainers, train
