"""Networks, batches and the training loop; knows no estimator."""

from ._batching import Batcher, StepSampler, count_epoch
from ._chain import TagChain
from ._loading import Encoder, check_peft_config, describe_encoder, read_model
from ._modules import HEAD, MODULES, TRANSFORMER, Frames, MeanModule, PairModule, TextModule
from ._net import TextNet, features_of
from ._onnx import BATCH_TOKENS, copy_exported, onnx_network
from ._runtime import (
    PRECISIONS,
    Ranks,
    Runtime,
    count_processes,
    current_ranks,
    denormals_flushed,
    failing_together,
    generators_of,
    is_first_process,
    resolve_device,
    resolve_precision,
    seeded,
    shared_seed,
    works_on,
)
from ._step import NotFiniteError
from ._train import (
    DirectoryCheckpoint,
    FitProgress,
    NotLearningError,
    Training,
    check_callbacks,
    digests_of_trainers,
    history_of,
)
