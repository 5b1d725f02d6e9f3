import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    """Tensors here are tiny: more threads than free cores only wait for each other."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)
