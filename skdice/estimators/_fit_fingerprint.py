"""What a fit depends on: which one a checkpoint belongs to, and whether all processes have it."""

from typing import Any

import numpy as np

from .._base_model import base_model_digest
from .._digest import digest, relevant_parameters
from .._parameters import parameters_of
from ..io._manifest import installed_versions


def fit_digests(
    estimator: Any, *, settings: Any, training_data: Any, held_out_data: Any
) -> dict[str, str]:
    """Return digests of all that a fit depends on, alike in every process, by what they are of.

    ``settings`` is what was made of the parameters: the seed, the precision.
    """
    stated = parameters_of(type(estimator))
    # Nothing is kept of the fit: the first of several processes may have callbacks of its own.
    without = ["callbacks"] if estimator.checkpoint_dir is None else []
    parameters = {
        name: value
        for name, value in relevant_parameters(estimator, without=without).items()
        if name not in stated or stated[name].counts == "in fits"
    }
    if not isinstance(parameters["random_state"], int | np.integer):
        # The seed that was drawn from it counts.
        del parameters["random_state"]
    return {
        "parameters": digest([type(estimator), parameters, settings]),
        "base model": digest(base_model_digest(estimator.model)),
        "package versions": digest(installed_versions()),
        "training data": digest(training_data),
        "held-out data": digest(held_out_data),
    }


def fit_fingerprint(digests: dict[str, str], n_processes: int) -> str:
    """Return the name of a fit among all fits."""
    return digest([digests, n_processes])
