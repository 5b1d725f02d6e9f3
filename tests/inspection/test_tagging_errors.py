import re
from html.parser import HTMLParser
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.inspection import TaggingErrors
from skdice.metrics import entity_precision_recall_fscore_support, get_entities

from .conftest import CHUNK_TAGS, MIXED, POS_TAGS, both, compare, corpora


@pytest.mark.parametrize("gold, predicted, expected", [
    ("B-PER I-PER O", "B-PER I-PER O", ["correct"]),
    ("B-PER I-PER O", "B-LOC I-LOC O", ["wrong label"]),
    ("B-PER I-PER O", "B-PER O O", ["wrong border"]),
    ("B-PER I-PER O", "O B-PER I-PER", ["wrong border"]),
    ("B-PER I-PER O", "B-LOC O O", ["wrong border and label"]),
    ("B-PER I-PER O", "O O O", ["missed"]), ("O O O", "O B-PER I-PER", ["spurious"]),
    ("B-PER O O", "O B-PER O", ["missed", "spurious"]), ("S-PER O", "B-PER O", ["correct"]),
    ("I-PER I-PER", "B-PER I-PER", ["correct"]),
])  # fmt: skip
def test_kinds_of_entities(gold, predicted, expected):
    assert compare([both(gold, predicted)]).frame["kind"].tolist() == expected


@pytest.mark.parametrize("gold, predicted, expected", [
    # More words come before the same label, which decides in a tie; then the first entities.
    ("B-PER I-PER I-PER", "B-LOC B-PER I-PER", (0, 1)),
    ("B-PER I-PER I-PER", "B-PER B-LOC I-LOC", (0, 1)), ("B-PER I-PER", "B-LOC B-PER", (0, 1)),
    ("B-PER I-PER", "B-PER B-PER", (0, 0)), ("B-PER B-PER", "B-PER I-PER", (0, 0)),
])  # fmt: skip
def test_pairs_of_first_words(gold, predicted, expected):
    frame = compare([both(gold, predicted)]).frame
    (pair,) = frame[["gold_start", "predicted_start"]].dropna().itertuples(index=False, name=None)
    assert pair == expected


@given(corpora(CHUNK_TAGS))
@settings(max_examples=150, deadline=None)
def test_entities_are_counted_as_the_metrics_count(sentences):
    errors = compare(sentences)
    y_true, y_pred = zip(*sentences)
    for side, y in (("gold", y_true), ("predicted", y_pred)):
        columns = ["row", f"{side}_start", f"{side}_end", f"{side}_label"]
        found = errors.frame[columns].dropna().itertuples(index=False, name=None)
        expected = [(row, *span) for row, tags in enumerate(y) for span in get_entities(tags)]
        assert sorted(found) == expected
    totals = errors.summary().iloc[0]
    precision, recall, _, support = entity_precision_recall_fscore_support(
        y_true, y_pred, average="micro"
    )
    n_gold, n_predicted = totals.sum() - totals["spurious"], totals.sum() - totals["missed"]
    assert n_gold == support
    assert totals["correct"] == pytest.approx(recall * n_gold)
    assert totals["correct"] == pytest.approx(precision * n_predicted)


@pytest.mark.parametrize("found", [["PER", "PER", "O"], ["B-PER", "I-PER", "."]])
def test_gold_tags_say_that_there_are_entities(found):
    """The metrics read predicted tags without a prefix as entities, too."""
    errors = TaggingErrors.from_predictions([["a", "b", "c"]], [["B-PER", "I-PER", "O"]], [found])
    assert errors.summary().iloc[0]["correct"] == errors.summary().iloc[0].sum() == 1


def test_frame():
    words = [["Anna", "Lee", "met", "Bo"], [], ["in", "New", "to", "Rome"]]
    gold = [["B-PER", "I-PER", "O", "O"], [], ["O", "B-LOC", "O", "B-LOC"]]
    predicted = [["O", "B-PER", "O", "B-PER"], [], ["O", "B-LOC", "O", "O"]]
    frame = compare(list(zip(gold, predicted)), words).frame
    expected = [
        (0, "wrong border", "PER", "PER", 0, 2, 1, 2, "Anna Lee"),
        (0, "spurious", None, "PER", None, None, 3, 4, "Bo"),
        (2, "correct", "LOC", "LOC", 1, 2, 1, 2, "New"),
        (2, "missed", "LOC", None, 3, 4, None, None, "Rome"),
    ]
    plain = frame.astype(object).where(frame.notna(), None)
    assert list(plain.itertuples(index=False, name=None)) == expected
    assert frame["gold_start"].dtype == frame["predicted_end"].dtype == "Int64"
    assert frame["kind"].cat.categories[-1] == "spurious"
    tags = ["B-LOC", "I-LOC"]
    tagger = SimpleNamespace(predict=lambda X: [tags])
    errors = TaggingErrors.from_estimator(tagger, [["北", "京"]], [tags])
    assert errors.frame[["kind", "text"]].to_numpy().tolist() == [["correct", "北京"]]


def test_it_prints_its_counts_and_first_rows():
    errors = compare(MIXED * 3)
    counts = (
        "12 sentences, entities: 3 correct, 3 wrong label, 3 wrong border, "
        "0 wrong border and label, 3 missed, 3 spurious. The first rows:"
    )
    first, *lines = repr(errors).splitlines()
    assert first == counts
    columns = ["row", "kind", "gold_label", "predicted_label", "text"]
    assert lines == errors.frame[columns].head(10).to_string().splitlines()
    html = errors._repr_html_()
    assert counts in html
    assert html.count("<tr>") == 10
    assert compare([both("O", "O")]).__repr__().startswith("1 sentence, entities: 0 correct")


TAGS = [["B-PER", "O"], ["O", "O"]]
X = [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize("X, y_true, y_pred, message", [
    (X[:1], TAGS, TAGS, "got 1 rows of X and 2 of y"),
    (X, TAGS, TAGS[:1], "got 2 and 1"),
    ([["a", "b"], ["c"]], TAGS, TAGS, "row 1 has 1 words and 2 tags"),
    (X, TAGS, [["O", "O"], ["O"]], "row 1 has 2 and 1"),
])  # fmt: skip
def test_bad_input(X, y_true, y_pred, message):
    with pytest.raises(ValueError, match=message):
        TaggingErrors.from_predictions(X, y_true, y_pred)
    tagger = SimpleNamespace(predict=lambda X: y_pred)
    with pytest.raises(ValueError, match=message):
        TaggingErrors.from_estimator(tagger, X, y_true)


VOID = {"meta", "input"}
WORDS = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        ["<script>", "</p>", "&amp;", "R&D", '"', "'", "-->", "שלום", "北", "京", "$x"]
    ),
)


class Page(HTMLParser):
    """What a page shows: sentences without labels, and the two sides of each entity."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.tags, self.rows, self.texts, self.entities = [], [], [], [], {}
        self.title, self.prose, self.directions = "", "", []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if tag not in VOID:
            self.stack.append((tag, attributes))
        if self.path("li") == ["li", "p"]:
            self.texts.append("")
            self.directions.append(attributes.get("dir"))
        if tag == "mark":
            empty = {"kind": attributes["data-kind"], "row": self.rows[-1], "sup": "", "sub": ""}
            entity = self.entities.setdefault(
                int(attributes["data-entity"]), {**empty, "gold": "", "predicted": ""}
            )
            assert entity["kind"] == attributes["data-kind"]

    def handle_endtag(self, tag):
        assert self.stack.pop()[0] == tag

    def handle_data(self, text):
        tag, attributes = self.stack[-1] if self.stack else ("", {})
        marks = [attributes for name, attributes in self.stack if name == "mark"]
        if tag == "title":
            self.title += text
        elif tag in ("script", "style"):
            return
        elif tag in ("sup", "sub"):
            if marks:
                self.entities[int(marks[-1]["data-entity"])][tag] += text
        elif attributes.get("class") == "row":
            self.rows.append(int(text))
        elif "p" in self.path("li"):
            self.texts[-1] += text
            for mark in marks:
                for side in mark["class"].split():
                    self.entities[int(mark["data-entity"])][side] += text
        else:
            self.prose += text

    def path(self, first):
        names = [name for name, _ in self.stack]
        return names[names.index(first) :] if first in names else []

    def values(self, name):
        return [a["value"] for _, a in self.tags if a.get("name") == name]


@given(st.sampled_from([CHUNK_TAGS, POS_TAGS]).flatmap(corpora), st.data())
@settings(max_examples=100, deadline=None)
def test_page_shows_the_frame(sentences, data):
    words = [
        data.draw(st.lists(WORDS, min_size=len(gold), max_size=len(gold))) for gold, _ in sentences
    ]
    errors = compare(sentences, words)
    page = Page(errors.to_html())
    assert page.rows == list(range(len(sentences)))
    assert set(page.directions) == {"auto"}
    for row_words, text in zip(words, page.texts):
        assert text.replace(" ", "") == "".join(row_words).replace(" ", "")

    # An entity all of whose words are empty strings still has its mark.
    assert sorted(page.entities) == errors.frame.index.tolist()
    for number, record in errors.frame.iterrows():
        shown = page.entities[number]
        assert (shown["kind"], shown["row"]) == (record["kind"], record["row"])
        for side, label in (("gold", "sup"), ("predicted", "sub")):
            if pd.isna(record[f"{side}_label"]):
                assert shown[side] == shown[label] == ""
                continue
            start, end = record[f"{side}_start"], record[f"{side}_end"]
            text = "".join(words[record["row"]][start:end])
            assert shown[side].replace(" ", "") == text.replace(" ", "")
            if record["kind"] != "correct" or side == "predicted":
                assert shown[label] == record[f"{side}_label"]


def test_caption_has_the_scores_of_the_metrics(tmp_path):
    y_true, y_pred = zip(*MIXED)
    scores = entity_precision_recall_fscore_support(y_true, y_pred, average="micro")
    text = compare(MIXED, [["Zoë"] * 6] + [["北"] * 2] * 3).to_html(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == text.encode()
    expected = "Precision {:.3f}, recall {:.3f}, F1 {:.3f}".format(*scores[:3])
    assert f"{expected}; 4 gold and 4 predicted entities in 4 sentences." in Page(text).prose
    prose = Page(compare([(["DET", "NOUN", "X"], ["DET", "VERB", "X"])]).to_html()).prose
    assert "F1 0.667; 3 gold and 3 predicted words in 1 sentences." in prose


def test_page_loads_nothing_and_runs_nothing_of_others():
    label, title = '<b title="x">&', "<script>alert(1)</script>"
    words = ["http://x.org/a.js", "<img src=//x.org/a.png>"]
    text = compare([([f"B-{label}", "O"], ["O", "O"])], [words]).to_html(title=title)
    page = Page(text)
    assert (page.title, page.values("label"), page.entities[0]["sup"]) == (title, [label], label)
    names = [tag for tag, _ in page.tags]
    assert names.count("script") == names.count("style") == 1
    assert not {*names} & {"b", "link", "img", "iframe", "object", "embed", "base"}
    assert not [a for _, a in page.tags if {"src", "href", "action", "srcset"} & set(a)]
    code = "".join(re.findall(r"(?s)<(?:style|script)>(.*?)</(?:style|script)>", text))
    assert not re.search(r"https?:|//\w+\.|@import|url\(|fetch|XMLHttp|import\(", code)
    policy = [a["content"] for _, a in page.tags if a.get("http-equiv")]
    assert policy[0].startswith("default-src 'none'")
