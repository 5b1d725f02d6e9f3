"""Tiny random transformers with tokenizers of a few hundred pieces."""

from pathlib import Path

import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    BertConfig,
    BertModel,
    BertTokenizerFast,
    RobertaConfig,
    RobertaModel,
    RobertaTokenizerFast,
)

from skdice._pretrained import loading

TEXT = """
a the in of to and at with for from on by was is lives works met saw said went city john mary anna
peter oslo paris rome berlin acme globex initech umbrella visited founded left near today yesterday
morning company report market new old small large very slowly quickly
"""
WORDS = TEXT.split()

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}


def build_bert(path: Path, max_position_embeddings: int = 64, **config) -> str:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        WORDS, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special)
    )
    (path / "vocab.txt").write_text(
        "\n".join(sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)), encoding="utf-8"
    )
    BertTokenizerFast(vocab=str(path / "vocab.txt")).save_pretrained(path)
    torch_config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        max_position_embeddings=max_position_embeddings,
        **{**SIZES, **config},
    )
    return _save(BertModel(torch_config, add_pooling_layer=False), path)


def build_roberta(path: Path) -> str:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer.train_from_iterator(
        [" ".join(WORDS)] * 3,
        trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    RobertaTokenizerFast(tokenizer_object=tokenizer).save_pretrained(path)
    config = RobertaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        max_position_embeddings=66,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        **SIZES,
    )
    return _save(RobertaModel(config, add_pooling_layer=False), path)


def _save(model, path: Path) -> str:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model.init_weights()
        for parameter in model.parameters():
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=0.1)
    with loading(str(path)):
        model.save_pretrained(path)
    return str(path)
