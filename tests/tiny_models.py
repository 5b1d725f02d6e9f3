"""Tiny random transformers with tokenizers of a few hundred pieces."""

import os
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import tokenizers as tk
import torch
import transformers as tr
from safetensors.torch import load_file, save_file

TEXT = """
a the in of to and at with for from on by was is lives works met saw said went city john mary anna
peter oslo paris rome berlin acme globex initech umbrella visited founded left near today yesterday
morning company report market new old small large very slowly quickly
"""
WORDS = TEXT.split()

SIZES = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
}  # fmt: skip


BERT_SPECIAL = {
    "pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}  # fmt: skip


def build_bert(path: Path, max_position_embeddings: int = 64, **config) -> str:
    n_pieces = _save_wordpiece(tr.BertTokenizerFast, path, BERT_SPECIAL.values())
    torch_config = tr.BertConfig(
        vocab_size=n_pieces, max_position_embeddings=max_position_embeddings, **{**SIZES, **config}
    )
    return save(tr.BertModel(torch_config, add_pooling_layer=False), path)


def build_distilbert(path: Path, num_hidden_layers: int = 2) -> str:
    n_pieces = _save_wordpiece(tr.DistilBertTokenizerFast, path, BERT_SPECIAL.values())
    config = tr.DistilBertConfig(
        vocab_size=n_pieces, max_position_embeddings=64, dim=32, n_layers=num_hidden_layers,
        n_heads=2, hidden_dim=64,
    )  # fmt: skip
    return save(tr.DistilBertModel(config), path)


def build_mpnet(path: Path, **config) -> str:
    """Positions are counted from the padding index on, if the ids of pieces are given."""
    n_pieces = _save_wordpiece(tr.MPNetTokenizerFast, path, ["<s>", "<pad>", "</s>", "[UNK]"])
    config = {"vocab_size": n_pieces, "max_position_embeddings": 66, **SIZES, **config}
    return save(tr.MPNetModel(tr.MPNetConfig(**config), add_pooling_layer=False), path)


def build_electra(path: Path, **config) -> str:
    """As ELECTRA-small: embeddings narrower than the layers, a projection in between."""
    n_pieces = _save_wordpiece(tr.BertTokenizerFast, path, BERT_SPECIAL.values())
    torch_config = tr.ElectraConfig(
        vocab_size=n_pieces, embedding_size=16, max_position_embeddings=64, **{**SIZES, **config}
    )
    return save(tr.ElectraModel(torch_config), path)


def build_roberta(path: Path, **config) -> str:
    tokenizer = _byte_level_bpe(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.post_processor = tk.processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tr.RobertaTokenizerFast(tokenizer_object=tokenizer).save_pretrained(path)
    torch_config = tr.RobertaConfig(
        vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=66, type_vocab_size=1,
        pad_token_id=1, bos_token_id=0, eos_token_id=2, **{**SIZES, **config},
    )  # fmt: skip
    return save(tr.RobertaModel(torch_config, add_pooling_layer=False), path)


def build_modernbert(path: Path) -> str:
    """Rotary positions; one layer with full and one with local attention."""
    special = list(BERT_SPECIAL.values())
    tokenizer = _byte_level_bpe(special)
    tokenizer.normalizer = tk.normalizers.NFC()
    tokenizer.post_processor = tk.processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:0 [SEP]:0",
        special_tokens=[(token, special.index(token)) for token in ("[CLS]", "[SEP]")],
    )
    tr.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_input_names=["input_ids", "attention_mask"],
        model_max_length=64,
        **BERT_SPECIAL,
    ).save_pretrained(path)
    config = tr.ModernBertConfig(
        vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=64, local_attention=8,
        pad_token_id=0, cls_token_id=2, bos_token_id=2, sep_token_id=3, eos_token_id=3,
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        mlp_dropout=0.1,
    )  # fmt: skip
    return save(tr.ModernBertModel(config), path)


def build_deberta_v2(path: Path) -> str:
    """As DeBERTa-v3: relative positions in buckets, no position embeddings, no token types."""
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    pieces = [*_unigram_pieces(special), ("[MASK]", 0.0)]
    tr.DebertaV2Tokenizer(vocab=pieces, unk_id=3).save_pretrained(path)
    config = tr.DebertaV2Config(
        vocab_size=len(pieces), max_position_embeddings=64, type_vocab_size=0,
        relative_attention=True, position_buckets=8, pos_att_type=["p2c", "c2p"],
        position_biased_input=False, norm_rel_ebd="layer_norm", share_att_key=True, **SIZES,
    )  # fmt: skip
    return save(tr.DebertaV2Model(config), path)


def build_xlnet(path: Path, num_hidden_layers: int = 2) -> str:
    """Padding on the left, the class token last with a token type of its own."""
    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
    pieces = _unigram_pieces(special)
    tr.XLNetTokenizer(vocab=pieces, unk_id=0).save_pretrained(path)
    config = tr.XLNetConfig(
        vocab_size=len(pieces), d_model=32, n_layer=num_hidden_layers, n_head=2, d_inner=64,
        pad_token_id=5,
    )  # fmt: skip
    return save(tr.XLNetModel(config), path)


def change_weights(path: str | Path) -> None:
    """Move the weights of a saved model by one place; size and time of the file stay."""
    file = Path(path) / "model.safetensors"
    status = file.stat()
    weights = {name: weight.roll(1, -1) for name, weight in load_file(file).items()}
    new = file.with_suffix(".new")  # A loaded model may still read the old file.
    save_file(weights, new, metadata={"format": "pt"})
    os.replace(new, file)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


BUILDERS = {
    "bert": build_bert, "roberta": build_roberta, "distilbert": build_distilbert,
    "mpnet": build_mpnet, "electra": build_electra, "deberta_v2": build_deberta_v2,
    "modernbert": build_modernbert, "xlnet": build_xlnet,
}  # fmt: skip


def _save_wordpiece(tokenizer_class, path: Path, special) -> int:
    """Save an uncased WordPiece tokenizer; return its number of pieces.

    The vocabulary is made by hand, for the library's trainer gives another one in every process.
    """
    letters = [*"!',-.?", *sorted(set("".join(WORDS)))]
    ends = sorted({word[-2:] for word in WORDS})
    pieces = [*special, *letters, *WORDS, *(f"##{end}" for end in letters + ends)]
    pieces = list(dict.fromkeys(pieces))
    tokenizer_class(vocab={piece: i for i, piece in enumerate(pieces)}).save_pretrained(path)
    return len(pieces)


def _byte_level_bpe(special: list[str]) -> tk.Tokenizer:
    """Return a byte-level BPE that takes a word without a space before it for a word's rest."""
    tokenizer = tk.Tokenizer(tk.models.BPE())
    tokenizer.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tk.decoders.ByteLevel()
    letters = tk.pre_tokenizers.ByteLevel.alphabet()
    how = {"vocab_size": 400, "special_tokens": special, "initial_alphabet": letters}
    trainer = tk.trainers.BpeTrainer(show_progress=False, **how)
    tokenizer.train_from_iterator([" ".join(WORDS)] * 3, trainer)
    return tokenizer


def _unigram_pieces(special: list[str]) -> list[tuple[str, float]]:
    """Return the pieces of a Unigram model with their scores: few long ones beat many short ones.

    Made by hand, for the library's trainer gives other pieces in every process.
    """
    spaced = [f"▁{word}" for word in WORDS]
    parts = sorted(
        {word[i : i + n] for word in spaced for n in (1, 2, 3) for i in range(len(word))}
    )
    return [(piece, 0.0) for piece in special] + [(part, len(part) / 10 - 8) for part in parts]


def save(model, path: Path, std: float = 0.1) -> str:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model.init_weights()
        for parameter in model.parameters():
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=std)
    with redirect_stderr(StringIO()):  # It has a bar.
        model.save_pretrained(path)
    return str(path)
