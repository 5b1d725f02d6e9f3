"""What a fit depends on: which one a checkpoint belongs to, and whether all processes have it."""

import os
from typing import Any

import numpy as np

from .._base_model import base_model_digest
from .._digest import digest, relevant_parameters
from ..io._manifest import installed_versions


def check_directory(owner: str, directory: Any, random_state: Any) -> None:
    """Check ``checkpoint_dir``, and that the fit can be found again by its seed."""
    if not isinstance(directory, str | os.PathLike) or not os.fspath(directory):
        raise ValueError(
            f"The 'checkpoint_dir' parameter of {owner} must be a directory (str or PathLike) or "
            f"None. Got {directory!r} instead."
        )
    if random_state is None:
        raise ValueError(
            f"checkpoint_dir={os.fspath(directory)!r} needs a random_state, best an int: with "
            f"None every fit is another one, and none could go on from a checkpoint."
        )


def fit_digests(
    estimator: Any, *, settings: Any, training_data: Any, held_out_data: Any
) -> dict[str, str]:
    """Return digests of all that a fit depends on, alike for the same fit in every process.

    Parameters
    ----------
    estimator : estimator
        Its class and parameters count, but those that do not change what is learned; of the base
        model the files, which are on this machine.
    settings : object
        What was made of the parameters: the seed, the precision.
    training_data, held_out_data : object

    Returns
    -------
    dict of str to str
        By what they are of, as an error can name it.
    """
    parameters = relevant_parameters(estimator)
    del parameters["runtime"]  # Of predictions after the fit.
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
