"""A dask cluster of processes on this machine."""

import multiprocessing
import os
from contextlib import contextmanager
from unittest import mock

import dask
import distributed
from distributed.utils import get_mp_context


@contextmanager
def local_cluster(n_workers=2, **options):
    """Start workers of one thread, without a dashboard, and yield a client."""
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    quiet = {"dashboard_address": None, "silence_logs": 50, "memory_limit": 0}
    settings = {
        "distributed.worker.multiprocessing-method": method,
        # A busy machine takes longer than the usual 15 seconds to start a killed worker again.
        "distributed.deploy.lost-worker-timeout": "120s",
    }
    with mock.patch.dict(os.environ, OMP_NUM_THREADS="1"), dask.config.set(settings):
        if method == "forkserver":
            # Imported once, not by every worker that starts anew.
            get_mp_context().set_forkserver_preload(["distributed", "skdice.distributed"])
        with (
            distributed.LocalCluster(
                n_workers=n_workers, **{"threads_per_worker": 1, **quiet, **options}
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
