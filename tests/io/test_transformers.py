import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers as tr

from skdice import DiceTokenTagger

from ..corpora import easy_corpus
from ..spies import encoded_rows, internals
from ..tiny_models import BUILDERS
from .conftest import FAST


@pytest.mark.parametrize("family", BUILDERS)
def test_tagger(fitted, family, tmp_path):
    estimator, X, _ = fitted("tagger", family)
    estimator.save_pretrained(tmp_path)
    X = [sentence for sentence in X if len(sentence) > 3]
    tags = copy.copy(estimator).set_params(decode="argmax").predict(X)
    tagging = tr.pipeline("token-classification", model=str(tmp_path), ignore_labels=[])
    for sentence, expected, p in zip(X, tags, estimator.predict_proba(X)):
        pieces = tagging(" ".join(sentence))
        starts = np.cumsum([0, *[len(word) + 1 for word in sentence[:-1]]])
        # The first piece may begin with the space before the word.
        found = [next(e for e in pieces if start < e["end"]) for start in starts]
        assert [entity["entity"] for entity in found] == expected
        np.testing.assert_allclose([e["score"] for e in found], p.max(axis=1), atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet", "modernbert"])
class TestClassifiers:
    def scores(self, directory, rows):
        classify = tr.pipeline("text-classification", model=directory, top_k=None)
        # Outputs are logits alone, which a pipeline can cut into rows.
        found = [classify([row, row], batch_size=2)[0] for row in rows]
        return [{part["label"]: part["score"] for part in row} for row in found]

    def check(self, estimator, directory, X, rows):
        names = [str(label) for label in estimator.classes_]
        found = self.scores(directory, rows)
        assert all(set(row) == set(names) for row in found)
        p = [[row[name] for name in names] for row in found]
        np.testing.assert_allclose(p, estimator.predict_proba(X), atol=1e-5)

    @pytest.mark.parametrize("case", ["texts", "labels"])
    def test_texts(self, fitted, family, case, tmp_path):
        estimator, X, _ = fitted(case, family)
        if internals(estimator).task.head.suffix is None:
            pytest.skip("the head began as a regression, so it is none of transformers")
        estimator.save_pretrained(tmp_path)
        self.check(estimator, str(tmp_path), X, X)

    def test_pairs_without_their_comparison(self, fitted, family, tmp_path):
        estimator, X, _ = fitted("pairs", family)
        estimator.save_pretrained(tmp_path)
        joint = copy.deepcopy(estimator)
        for weight in joint.net_.module_.comparison.parameters():
            weight.data.zero_()
        joint.net_.module_.share.fill_(1)
        joint = internals(joint).with_task(replace(internals(joint).task, similarities=None))
        rows = [{"text": first, "text_pair": second} for first, second in X]
        self.check(joint, str(tmp_path), X, rows)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet", "deberta_v2"])
def test_question_answering(fitted, family, tmp_path):
    estimator, X, _ = fitted("questions", family)
    estimator.save_pretrained(tmp_path)
    tokenizer = tr.AutoTokenizer.from_pretrained(tmp_path)
    model = tr.AutoModelForQuestionAnswering.from_pretrained(tmp_path)
    for pair in X:
        texts = pair[::-1] if family == "xlnet" else pair  # As transformers' own scripts do.
        inputs = tokenizer(*texts, return_tensors="pt")
        with torch.inference_mode():
            output = model(**inputs)
        logits = torch.stack([output.start_logits[0], output.end_logits[0]], dim=1).numpy()
        encoded = encoded_rows(estimator, [pair])
        assert encoded.input_ids[0].tolist() == inputs["input_ids"][0].tolist()
        expected = internals(estimator).network.logits(encoded)
        np.testing.assert_allclose(logits[encoded.items[0]], expected, atol=1e-5)


@pytest.mark.parametrize("case", ["queries", "two texts"])
def test_a_head_of_skdice_has_its_encoder(fitted, case, tmp_path):
    estimator, _, _ = fitted(case)
    estimator.save_pretrained(tmp_path)
    if case == "two texts":  # No other head is loaded in its place.
        with pytest.raises(RuntimeError, match="mismatched"):
            tr.AutoModelForSequenceClassification.from_pretrained(tmp_path)
    encoder = tr.AutoModel.from_pretrained(tmp_path)
    expected = estimator.net_.module_.transformer.state_dict()
    for name, weight in encoder.state_dict().items():
        assert torch.equal(weight, expected[name])


def test_files_can_be_read_by_others(tiny_bert, tmp_path):
    tagger = DiceTokenTagger(tiny_bert, **FAST).fit(*easy_corpus(8))
    tagger.tokenizer_.tokenizer.chat_template = {"default": "{{ a }}", "other": "{{ b }}"}
    tagger.save_pretrained(tmp_path / "saved")
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {
        *("README.md", "skdice.json", "config.json", "model.safetensors"),
        *("tokenizer.json", "tokenizer_config.json"),
    }
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "saved").iterdir()}
    (tmp_path / "other").touch()
    assert modes == {(tmp_path / "other").stat().st_mode & 0o777}
    (tmp_path / "directory").mkdir()
    assert (tmp_path / "saved").stat().st_mode == (tmp_path / "directory").stat().st_mode
