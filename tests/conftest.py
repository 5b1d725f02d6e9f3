"""Tiny random models, built once per session; nothing is downloaded."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import pytest
import torch

from .tiny_models import build_bert, build_roberta

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """Directory of a tiny random BERT with a WordPiece tokenizer."""
    return build_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory):
    """Directory of a tiny random RoBERTa with a byte-level BPE tokenizer."""
    return build_roberta(tmp_path_factory.mktemp("roberta"))


@pytest.fixture(scope="session", params=["bert", "roberta"])
def tiny_model(request):
    """Each of the tiny models in turn."""
    return request.getfixturevalue(f"tiny_{request.param}")
