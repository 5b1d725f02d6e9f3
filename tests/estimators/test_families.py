"""Tagger and extractor on every model family: they differ in tokenizer, padding side, special
tokens, token types, positions and the names of their parts."""

import importlib.util
import pickle
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch

from skdice import DiceSpanExtractor, DiceTokenTagger
from skdice.nn._loading import position_limit
from skdice.nn._modules import TokenModule
from skdice.text._tokenizer import WordTokenizer

from ..corpora import easy_corpus
from ..tiny_models import BUILDERS
from .test_span import easy_questions

FAST = {"max_epochs": 5, "lr": 1e-2, "batch_size": 8, "random_state": 0, "verbose": 0}


class Family(NamedTuple):
    """What is known of a family's tiny model."""

    prefix: list[str]
    suffix: list[str]
    special_types: tuple[int, ...] = (0, 0)
    n_positions: int | None = 64
    pads_left: bool = False
    takes_types: bool = False


FAMILIES = {
    "bert": Family(["[CLS]"], ["[SEP]"], takes_types=True),
    "roberta": Family(["<s>"], ["</s>"]),
    "distilbert": Family(["[CLS]"], ["[SEP]"]),
    "electra": Family(["[CLS]"], ["[SEP]"], takes_types=True),
    "deberta_v2": Family(["[CLS]"], ["[SEP]"]),
    "modernbert": Family(["[CLS]"], ["[SEP]"]),
    "xlnet": Family([], ["<sep>", "<cls>"], (0, 2), None, pads_left=True, takes_types=True),
}


@pytest.fixture(scope="module", params=FAMILIES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def family(name):
    return FAMILIES[name]


@pytest.fixture(scope="module")
def model(name, tiny_models):
    return tiny_models(name)


@pytest.fixture(scope="module")
def fitted(model):
    return DiceTokenTagger(model, **FAST).fit(*easy_corpus(96))


@pytest.fixture(scope="module")
def extractor(model):
    parameters = {**FAST, "max_epochs": 2, "lr": 3e-3, "max_length": 40}
    return DiceSpanExtractor(model, loss="ce", n_best=1000, **parameters).fit(*easy_questions(32))


def test_every_tiny_model_is_tested():
    assert set(FAMILIES) == set(BUILDERS)


def test_special_tokens(family, model):
    tokenizer = WordTokenizer(model)
    to_tokens = tokenizer.tokenizer.convert_ids_to_tokens
    frame = tokenizer.frame
    assert [to_tokens(group) for group in frame.special] == [family.prefix, family.suffix]
    assert sum(frame.special_types, ()) == family.special_types
    assert frame.text_types == (0,)
    assert tokenizer.pads_left is family.pads_left
    assert tokenizer.pad_id == tokenizer.tokenizer.pad_token_id


def test_same_as_with_transformers_alone(family, fitted):
    """Its tokenizer, its padding, its batch: all that is ours in between must not show."""
    X = [["john", "saw", "oslo"], ["mary"], ["the", "small", "company", "near", "rome"]]
    tokenizer, transformer = fitted.tokenizer_.tokenizer, fitted.net_.module_.transformer.eval()
    texts = [" " + " ".join(words) for words in X]
    inputs = tokenizer(
        texts, padding=True, return_token_type_ids=family.takes_types, return_tensors="pt"
    )
    with torch.inference_mode():
        logits = transformer(**inputs).logits
    batch = fitted._batcher(fitted._encode(X)).collate(np.arange(len(X)))
    assert torch.equal(batch["input_ids"], inputs["input_ids"])
    assert torch.equal(batch["attention_mask"], inputs["attention_mask"])
    for i, (words, p) in enumerate(zip(X, fitted.predict_proba(X))):
        starts = [1 + sum(len(word) + 1 for word in words[:j]) for j in range(len(words))]
        first_pieces = [inputs.char_to_token(i, start) for start in starts]
        expected = logits[i, first_pieces].softmax(-1).numpy()
        np.testing.assert_allclose(p, expected, atol=1e-5)


def test_answers_are_those_of_transformers_alone(family, extractor):
    """All spans of a context, from the logits of all positions and the offsets of its pieces."""
    tokenizer, transformer = extractor.tokenizer_.tokenizer, extractor.net_.module_.transformer
    X, _ = easy_questions(4, seed=1)
    no_answer_score = extractor.no_answer_score(X)
    for i, (found, (question, context)) in enumerate(zip(extractor.predict_spans(X), X)):
        texts = (context, question) if family.pads_left else (question, context)
        inputs = tokenizer(
            *texts,
            return_offsets_mapping=True,
            return_token_type_ids=family.takes_types,
            return_tensors="pt",
        )
        offsets = inputs.pop("offset_mapping")[0].tolist()
        which = [None if text is None else texts[text] for text in inputs.sequence_ids()]
        # The mark of a word's beginning may be a piece of its own, which covers no letter.
        pieces = [
            j
            for j, (text, (first, last)) in enumerate(zip(which, offsets))
            if text == context and text[first:last].strip()
        ]
        with torch.inference_mode():
            output = transformer.eval()(**inputs)
        start, end = output.start_logits[0].double(), output.end_logits[0].double()
        logits = {(a, b): float(start[a] + end[b]) for a in pieces for b in pieces if a <= b}
        is_null = inputs["input_ids"][0] == tokenizer.cls_token_id
        null = float((start + end)[is_null])
        total = sum(map(np.exp, logits.values())) + np.exp(null)
        assert no_answer_score[i] == pytest.approx(null - max(logits.values()), abs=1e-4)
        expected = sorted((np.exp(value) / total for value in logits.values()), reverse=True)
        np.testing.assert_allclose([span.score for span in found], expected, atol=1e-5)
        a, b = max(logits, key=logits.get)
        best = context[offsets[a][0] : offsets[b][1]].strip()
        assert found[0].text == best == extractor.predict(X)[i]


def test_batch_size_and_order_of_questions_do_not_matter(extractor):
    X = easy_questions(10, seed=2)[0] + [("city ?", "the saw " * 30), ("a ? " * 8, "in " * 9)]
    expected = extractor.no_answer_score(X)
    copy = pickle.loads(pickle.dumps(extractor))
    for batch_size in (1, 64):
        copy.set_params(batch_size=batch_size)
        np.testing.assert_allclose(copy.no_answer_score(X), expected, atol=1e-5)
        np.testing.assert_allclose(copy.no_answer_score(X[::-1])[::-1], expected, atol=1e-5)
        assert copy.predict(X).tolist() == extractor.predict(X).tolist()


def test_number_of_positions(family, model, fitted):
    assert position_limit(model) == family.n_positions
    assert fitted.max_length_ == (family.n_positions or 512)


def test_longest_window_runs(fitted):
    longest = fitted.max_length_ - fitted.tokenizer_.frame.n_special
    X = [["the"] * longest, ["john"]]
    assert [len(tags) for tags in fitted.predict(X)] == [longest, 1]


def test_token_types_are_read(family, model):
    module = TokenModule(model, 3).eval()
    inputs = {
        "input_ids": torch.full((1, 4), 9),
        "attention_mask": torch.ones(1, 4, dtype=torch.int64),
        "row": torch.zeros(4, dtype=torch.int64),
        "column": torch.arange(4),
    }
    with torch.inference_mode():
        one = module(token_type_ids=torch.tensor([[0, 0, 0, 0]]), **inputs)
        two = module(token_type_ids=torch.tensor([[0, 0, 1, 1]]), **inputs)
    assert torch.equal(one, two) != family.takes_types


def test_learns(fitted):
    assert fitted.score(*easy_corpus(40, seed=1)) > 0.9


def test_one_tag_per_word(fitted):
    X = [
        [],
        ["", "\u200b", "\x00", "\ud800", "<sep>", "[SEP]", "</s>", "😀", "x" * 500, "日本"],
        ["john"],
        [""],
        ["\u200b"] * 3,
    ]
    predicted = fitted.predict(X)
    assert [len(tags) for tags in predicted] == [len(words) for words in X]
    assert {tag for tags in predicted for tag in tags} <= set(fitted.classes_)
    for p in fitted.predict_proba(X):
        assert np.isfinite(p).all()


def test_batch_size_and_order_do_not_matter(fitted):
    X = easy_corpus(30, seed=2)[0] + [["john"], ["the"] * 40, ["anna", "saw"] * 10]
    expected = np.concatenate(fitted.predict_proba(X))
    copy = pickle.loads(pickle.dumps(fitted))
    for batch_size in (1, 5, 64):
        copy.set_params(batch_size=batch_size)
        np.testing.assert_allclose(np.concatenate(copy.predict_proba(X)), expected, atol=1e-5)
        backwards = np.concatenate(copy.predict_proba(X[::-1])[::-1])
        np.testing.assert_allclose(backwards, expected, atol=1e-5)
        assert copy.predict(X).tolist() == fitted.predict(X).tolist()


def test_sentences_longer_than_the_window(model):
    X, y = easy_corpus(80)
    long_X, long_y = (
        [[word for row in rows[i : i + 10] for word in row] for i in range(0, 80, 10)]
        for rows in (X, y)
    )
    tagger = DiceTokenTagger(
        model, max_length=16, stride=4, **{**FAST, "max_epochs": 6, "batch_size": 4}
    )
    tagger.fit(long_X, long_y)
    assert len(tagger._encode(long_X)) > 3 * len(long_X)
    assert tagger.score(long_X, long_y) > 0.9
    assert [len(tags) for tags in tagger.predict(long_X)] == [len(words) for words in long_X]


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision(model, precision):
    tagger = DiceTokenTagger(model, precision=precision, **{**FAST, "max_epochs": 2})
    history = tagger.fit(*easy_corpus(24)).history_
    assert history.train_loss.iloc[1] < history.train_loss.iloc[0]


@pytest.mark.parametrize("n_frozen_layers", [0, 1, 2])
def test_frozen_part_stays_as_it_was(model, n_frozen_layers):
    """What the hidden states below layer k depend on, and only that."""
    corpus = easy_corpus(16)
    tagger = DiceTokenTagger(model, n_frozen_layers=n_frozen_layers, **{**FAST, "max_epochs": 1})
    module = tagger.fit(*corpus).net_.module_
    before = TokenModule(model, len(tagger.classes_))
    hidden = [_hidden_states(m.eval(), n_frozen_layers) for m in (before, module)]
    torch.testing.assert_close(*hidden, rtol=0, atol=0)
    layers = _layers(module)
    for i, (old, new) in enumerate(zip(_layers(before), layers)):
        same = all(torch.equal(a, b) for a, b in zip(old.parameters(), new.parameters()))
        assert same == (i < n_frozen_layers)
    assert all(p.requires_grad for p in module.head_parameters())


def test_frozen_part_runs_without_dropout(model):
    module = TokenModule(model, 3, n_frozen_layers=1).train()
    torch.testing.assert_close(_hidden_states(module, 1), _hidden_states(module, 1), rtol=0, atol=0)
    assert not torch.equal(_hidden_states(module, 2), _hidden_states(module, 2))


def test_pickle(fitted):
    X = easy_corpus(10, seed=3)[0]
    copy = pickle.loads(pickle.dumps(fitted))
    for p, q in zip(fitted.predict_proba(X), copy.predict_proba(X)):
        np.testing.assert_array_equal(p, q)


def test_nothing_is_printed(model, capfd):
    tagger = DiceTokenTagger(model, **{**FAST, "max_epochs": 1}).fit(*easy_corpus(8))
    tagger.predict([["john"] * 200])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["bert", "roberta", "deberta_v2", "xlnet"], indirect=True)
def test_directory_without_a_vocabulary(model, tmp_path):
    """transformers makes up a tokenizer that knows the special tokens only."""
    shutil.copytree(model, tmp_path, dirs_exist_ok=True)
    for file in ("tokenizer.json", "vocab.txt"):
        Path(tmp_path, file).unlink(missing_ok=True)
    with pytest.raises(ValueError, match="has no pieces but the special tokens"):
        WordTokenizer(str(tmp_path))


@pytest.mark.skipif(
    importlib.util.find_spec("sentencepiece") is not None, reason="sentencepiece is installed"
)
@pytest.mark.parametrize(
    "name, file", [("deberta_v2", "spm.model"), ("xlnet", "spiece.model")], indirect=["name"]
)
def test_sentencepiece_file_alone_needs_more_packages(model, tmp_path, file):
    shutil.copytree(model, tmp_path, dirs_exist_ok=True)
    Path(tmp_path, "tokenizer.json").rename(tmp_path / file)
    with pytest.raises(ValueError, match="pip install sentencepiece protobuf"):
        WordTokenizer(str(tmp_path))


def _layers(module):
    (layers,) = [
        part
        for part in module.modules()
        if isinstance(part, torch.nn.ModuleList) and len(part) == 2
    ]
    return layers


def _hidden_states(module, n_layers):
    """Return what the layer after the first ``n_layers`` reads, or what the last one gives."""
    found = []
    layers = _layers(module)
    if n_layers < len(layers):
        hook = layers[n_layers].register_forward_pre_hook(lambda _, args: found.append(args[0]))
    else:
        hook = layers[-1].register_forward_hook(lambda *call: found.append(call[2]))
    ids = torch.arange(9, 21).reshape(2, 6)
    with torch.no_grad():
        module.transformer(ids, attention_mask=torch.ones_like(ids))
    hook.remove()
    return found[0][0] if isinstance(found[0], tuple) else found[0]
