import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from skdice.text import WordTokenizer

SPECIAL_TEXT = ["[SEP]", "[CLS]", "[PAD]", "[MASK]", "<s>", "</s>", "<pad>", "<mask>"]
STRANGE = [
    "", " ", "\u200b", "\u00ad", "\x00", "a\x00b", "a\x00c", "\x7f\x80", "\ud800", "a\udfffb",
    "\ufffd", "\u3000",
]  # fmt: skip
ORDINARY = ["the", "John", "Oslo.", "x" * 300, "a b", "日本", "e\u0301", "😀", "-", "don't"]

any_text = st.text(st.characters(exclude_categories=()), max_size=6)
text = st.text(max_size=6)


def as_lists(pieces):
    return [pieces[i].tolist() for i in range(len(pieces))]


def backend_of(directory):
    """Return the tokenizer of the tokenizers library, taking special tokens as text."""
    backend = Tokenizer.from_file(f"{directory}/tokenizer.json")
    backend.encode_special_tokens = True
    return backend


def save_fast(backend, path, **special):
    PreTrainedTokenizerFast(tokenizer_object=backend, **special).save_pretrained(path)
    return str(path)


@given(st.lists(any_text | st.sampled_from(STRANGE + SPECIAL_TEXT), max_size=6))
@settings(deadline=None, max_examples=30)
def test_each_word_is_cut_by_itself(bert, roberta, words):
    for tokenizer in (bert, roberta):
        together = as_lists(tokenizer.encode([*words, *words]))
        alone = [as_lists(tokenizer.encode([word]))[0] for word in words]
        assert together == alone * 2
        assert all(together)
        special = {*tokenizer.tokenizer.all_special_ids} - {tokenizer.tokenizer.unk_token_id}
        assert special.isdisjoint(i for pieces in together for i in pieces)


@given(st.lists(text | st.sampled_from(ORDINARY + SPECIAL_TEXT), max_size=8))
@settings(deadline=None, max_examples=30)
def test_whole_sentences_of_wordpiece(tiny_bert, bert, words):
    """As the tokenizer cuts the words of a sentence, except for words that it drops."""
    whole = backend_of(tiny_bert).encode(words, is_pretokenized=True, add_special_tokens=False)
    expected = [[] for _ in words]
    for piece, word in zip(whole.ids, whole.word_ids):
        expected[word].append(piece)
    unknown = [bert.tokenizer.unk_token_id]
    assert as_lists(bert.encode(words)) == [pieces or unknown for pieces in expected]


@given(st.lists(text | st.sampled_from(ORDINARY + SPECIAL_TEXT), max_size=8))
@settings(deadline=None, max_examples=30)
def test_words_of_byte_level_bpe_have_a_leading_space(tiny_models, roberta, words):
    backend = backend_of(tiny_models("roberta"))
    expected = [backend.encode(" " + word, add_special_tokens=False).ids for word in words]
    assert as_lists(roberta.encode(words)) == expected


def test_byte_level_tokenizer_that_adds_the_space_itself(tiny_models, roberta, tmp_path):
    backend = backend_of(tiny_models("roberta"))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    other = WordTokenizer(save_fast(backend, tmp_path, unk_token="<unk>", pad_token="<pad>"))
    words = ["the", "quickly", " Oslo"]
    expected = [backend.encode(word, add_special_tokens=False).ids for word in words]
    assert as_lists(other.encode(words)) == expected
    assert as_lists(roberta.encode(["the", "quickly", "Oslo"])) == expected


def test_special_tokens_among_the_pieces_of_unigram(tmp_path):
    """There, cutting alone would find them: their score in the vocabulary is the best of all."""
    backend = Tokenizer(
        models.Unigram(
            [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), ("▁", -3.0), ("a", -3.0), ("s", -3.0)],
            unk_id=0,
        )
    )
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.add_special_tokens([AddedToken(token) for token in ("<unk>", "<s>", "</s>")])
    special = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    tokenizer = WordTokenizer(save_fast(backend, tmp_path, **special))
    assert as_lists(tokenizer.encode(["<s>", "a</s>", "as"])) == [[3, 0], [3, 4, 0], [3, 4, 5]]
    assert tokenizer.pad_id == 0  # it has no padding token


def test_truncation_and_padding_in_the_file_are_ignored(tiny_model, tmp_path):
    shutil.copytree(tiny_model, tmp_path, dirs_exist_ok=True)
    backend = backend_of(tiny_model)
    backend.enable_truncation(3)
    backend.enable_padding(length=12)
    backend.save(f"{tmp_path}/tokenizer.json")
    word = "a" * 40
    assert len(backend.encode(word).ids) == 12, "the file must ask for both"
    changed, plain = WordTokenizer(str(tmp_path)), WordTokenizer(tiny_model)
    assert changed.frame == plain.frame
    assert as_lists(changed.encode([word, "a"])) == as_lists(plain.encode([word, "a"]))
    assert len(plain.encode([word])[0]) > 3


def test_slow_tokenizer_is_refused(monkeypatch, tmp_path):
    class SlowTokenizer:
        is_fast = False

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda *args, **kwargs: SlowTokenizer())
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match=r"' \(SlowTokenizer\) is not a fast one"):
        WordTokenizer(str(tmp_path))
