import re
from html.parser import HTMLParser

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.metrics import entity_precision_recall_fscore_support

from .tagged_sentences import CHUNK_TAGS, MIXED, POS_TAGS, compare, corpora

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


def test_caption_has_the_scores_of_the_metrics():
    y_true, y_pred = zip(*MIXED)
    scores = entity_precision_recall_fscore_support(y_true, y_pred, average="micro")
    prose = Page(compare(MIXED).to_html()).prose
    expected = "Precision {:.3f}, recall {:.3f}, F1 {:.3f}".format(*scores[:3])
    assert f"{expected}; 4 gold and 4 predicted entities in 4 sentences." in prose
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


def test_file_is_the_page(tmp_path):
    text = compare(MIXED, [["Zoë"] * 6] + [["北"] * 2] * 3).to_html(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == text.encode()
