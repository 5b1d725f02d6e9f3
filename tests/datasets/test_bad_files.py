import gzip
import lzma
from functools import partial

import pytest

from skdice import datasets

MRPC = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
QUORA = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
GLUE = "index\tsentence1\tsentence2\tlabel\n"
TEXT = '{"text": "a", "label": []}'
QUESTION = {"id": "a", "question": "Who?", "answers": [{"text": "Bo", "answer_start": 9}]}
PARAGRAPH = {"context": "Anna met Bo.", "qas": [QUESTION]}


def line(node, word="w", upos="X", xpos="x"):
    return "\t".join([str(node), word, "_", upos, xpos, "_", "_", "_", "_", "_\n"])


def question(**fields):
    return {"data": [{"paragraphs": [PARAGRAPH | {"qas": [QUESTION, QUESTION | fields]}]}]}


def answer(**fields):
    return question(answers=[{"text": "Bo", "answer_start": 9} | fields])


# For each reader: a file and what is said of it, parts in order.
BAD = {
    datasets.read_conll: [
        ("a X\nb\n", "line 2: got 1 column in 'b'"),
        ("a X\n\u00a0\nb Y\n", "line 2: got 1 column"),
        ("a\tX\n\nb X\n", "line 3: got 1 column", "separated by a TAB"),
        ("a X\n" + "b" * 200, "line 2: got 1 column in 'bbb", "..."),
        ("a b\tc d\t1\n" * 9, "line 1: this is no CoNLL", "9 lines have spaces", "one word and"),
        ("1 a b\n0 a\n1 a b c\n", "line 1: this is no CoNLL", "3 lines have 2 to 4 columns"),
        ("", "line 1", "without any sentence"),
        ("-DOCSTART- O\n\n", "without any sentence"),
    ],
    datasets.read_conllu: [
        (line(1) + "2\tb\n", "line 2: got 2 columns", "expected 10"),
        (line(1) + line(2)[:-1] + "\t_\n", "line 2: got 11 columns"),
        ("# c\n" + line(2), "line 2: got the ID '2', expected the word 1"),
        (line(1) + line(1), "line 2: got the ID '1'", "Is the empty line"),
        (line(1) + "\n" + line(2), "line 3: got the ID '2'"),
        *((line(node), f"line 1: got the ID {node!r}") for node in ("0", "01", "a", "")),
        (line(1, ""), "line 1: the word (column 2) is empty"),
        (line(1, "a", "_"), "line 1:", "no upos tag", "tag='xpos'"),
        ("", "without any sentence"),
    ],
    datasets.read_pairs: [
        ("a\tb\t1\na\tb\n", "line 2: got 2 columns in 'a\\tb', expected 3", "a TAB"),
        ("a\tb\t1\n\na\tb\t0\n", "line 2: got a blank line"),
        ("a\tb\t1\na\tb\t \n", "line 2: the label (column 2) is empty"),
        (MRPC + "1\t2\t3\ta\n", "line 2: got 4 columns", "expected 5"),
        (MRPC, "line 1: the file ends after its header"),
        ("label\t" + GLUE, "line 1: there must be one column 'label'"),
        (QUORA + '0\t1\t2\t"a\nb"\tc\t1\n0\t1\n', "line 4: got 2 columns", "expected 6"),
        (QUORA + '0\t1\t2\t"a\nb\tc\t1\n', "line 2:", "badly quoted", "line 3"),
        (QUORA + '0\t1\t2\t"a" b\tc\t1\n', "line 2:", "badly quoted"),
        *(
            (f"{first}\na\tb\t1\n", "line 1: cannot tell the columns", f"{first!r}, cut", "'bimpm'")
            for first in ("", "a\tb", "a b 1", "1\ta\tb\tc\td", "index\tquestion\tlabel", "1\ta\tb")
        ),
    ],
    datasets.read_labeled_text: [
        ("1 a\n0\n", "line 2: got 1 column in '0', expected 2", "one space"),
        ("1 a\n\n0 b\n", "line 2: got a blank line"),
        ("\n1 a\n", "line 1: got a blank line"),
        ("1\ta\n0\tb\tc\n", "line 2: got 3 columns", "a TAB"),
        ("sentence\tlabel\na\t1\nb\t\n", "line 3: the label (column 1) is empty"),
        ("sentence\tlabel\n", "line 1: the file ends after its header"),
        ("", "line 1: the file ends without any row"),
        ("mood\tbody\n1\ta\n0\tb\n", "line 1: the label is 'mood'", "header"),
        ("a\tx z\nb\ty\nc d\ty\n", "line 3: the label 'c d' has a space in it", "text=1, label=0"),
        ("text\ttweet\tclass\na\ta\tx\n", "line 1: cannot tell the column of the text"),
        ("id\tbody\tmood\n", "line 1: cannot tell the column of the text and that", "'id', 'body'"),
        ("text label\na b\n", "line 1", "label must come first"),
    ],
    datasets.read_squad: [
        ("", "the file has no questions"),
        ('{"data": [],\n\n oops}', "line 3: is not JSON", "line 3 column 2"),
        ("1" * 5000, "is not JSON"),
        ([], "no questions"),
        ({"version": 1}, "'data' is missing. Got the keys 'version'"),
        ({"data": [{"paragraphs": []}]}, "no questions"),
        ({"data": [{"paragraphs": [PARAGRAPH], "title": None}]}, "data[0], 'title': a string"),
        ({"data": [{"paragraphs": [PARAGRAPH, {}]}]}, "data[0]['paragraphs'][1]: 'context' is mis"),
        ({"data": [{"paragraphs": [PARAGRAPH | {"qas": 3}]}]}, "[0]['paragraphs'][0], 'qas'"),
        (question(id=1.5), "['qas'][1], 'id': a string or an integer is expected. Got 1.5"),
        (question(is_impossible=1), "'is_impossible': true or false is expected. Got 1"),
        (question(answers=[{"text": "Bo"}]), "['answers'][0]: 'answer_start' is missing"),
        *((answer(answer_start=x), "'answer_start': an integer") for x in (9.0, "9", True, None)),
    ],
    datasets.read_doccano: [
        (f"[{TEXT}\n{{}}]", "line 2: is not JSON", "Expecting ',' delimiter"),
        (f'{TEXT}\n{TEXT}\n{{"a":\n 2\n', "line 3: is not JSON", "Got '{"),
        (f"{TEXT}\n7\n", "line 2, row 1: an object is expected. Got 7"),
        ('{"a": ' + "[" * 10**5, "line 1", "is not JSON"),
        ('{"a": ' + "1" * 10**5 + "}", "line 1", "is not JSON"),
        ("[]", "no annotated text"),
    ],
}
CASES = [(reader, *case) for reader, cases in BAD.items() for case in cases]


@pytest.mark.parametrize("reader, content, parts", [(r, c, p) for r, c, *p in CASES])
def test_content(write, reader, content, parts):
    path = write(content)
    with pytest.raises(ValueError) as error:
        reader(path)
    message = str(error.value)
    assert message.startswith(str(path))
    position = 0
    for part in parts:
        assert part in message[position:]
        position = message.index(part, position) + len(part)
    assert len(message) < 1000


@pytest.mark.parametrize("reader, content, message", [
    (datasets.read_pairs, b"a\tb\t1\n\xff", r"line 2: cannot decode the bytes b'\\xff' as 'utf-8'"),
    (datasets.read_squad, b'{"data":\n\xff}', r"line 2: .*\). Convert it to UTF-8, or"),
    (datasets.read_label_studio, b'{"a": 1}\n{"a": "\xff"}', "line 2: cannot decode"),
    (partial(datasets.read_conll, encoding="ascii"), "a X\né X\n", "as 'ascii'.* encoding='latin"),
    (partial(datasets.read_conll, encoding="utf-99"), "a X\n", "'encoding' .* 'utf-99'"),
    (partial(datasets.read_conll, encoding="hex"), "a X\n", "'encoding'"),
])  # fmt: skip
def test_bytes(write, reader, content, message):
    with pytest.raises(ValueError, match=message):
        reader(write(content))


READERS = [*BAD, datasets.read_label_studio]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name, compress", [("a.gz", gzip.compress), ("a.XZ", lzma.compress)])
def test_archives_that_are_none(write, reader, name, compress):
    for content in (b"a X\n", compress(b"a X\n" * 100)[:-12]):
        with pytest.raises(ValueError, match=f"{name}: the suffix says {name[2:].lower()}, but"):
            reader(write(content, name))


@pytest.mark.parametrize("reader", READERS)
def test_missing_file_and_directory(tmp_path, reader):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nowhere\.txt"):
        reader(tmp_path / "nowhere.txt")
    with pytest.raises(FileNotFoundError, match="is a directory"):
        reader(tmp_path)


@pytest.mark.parametrize("reader, parameters", [
    *((datasets.read_conll, {"columns": n}) for n in ((0,), (0, 0), (0, True), (0, "tag"), 0)),
    *((datasets.read_conll, {"separator": value}) for value in ("", 1)),
    (datasets.read_conllu, {"tag": "deprel"}),
    *((datasets.read_pairs, {"layout": value}) for value in ("GLUE", None, 3, ["er"])),
    (datasets.read_pairs, {"layout": "er", "first": 0, "second": 1, "label": 2}),
    (datasets.read_pairs, {"second": None, "first": "a", "label": "b"}),
    *((datasets.read_labeled_text, {"separator": value}) for value in ("", "||", '"', "\n", 3)),
    (datasets.read_labeled_text, {"text": True}),
    (datasets.read_labeled_text, {"label": 1.0, "text": 0}),
    (datasets.read_label_studio, {"text": ["a", "b"]}),
    (datasets.read_doccano, {"offsets": "bytes"}),
])  # fmt: skip
def test_parameters(write, reader, parameters):
    with pytest.raises(
        ValueError, match=f"The {next(iter(parameters))!r} parameter of {reader.__name__}"
    ):
        reader(write("a X\n"), **parameters)


@pytest.mark.parametrize(
    "reader", [datasets.read_squad, datasets.read_doccano, datasets.read_label_studio]
)
def test_json_nested_deeply_is_a_plain_error(write, reader):
    for depth in (900, 3000):
        with pytest.raises(ValueError, match=r"file\.txt"):
            reader(write('{"data": ' + "[" * depth + "]" * depth + "}"))


@pytest.mark.parametrize("form", [" [{0},\n {0}] ", "{0}\r\n\r\n{0}\n", "\ufeff[{0},{0}]"])
def test_json_lists_and_lines(write, form):
    assert datasets.read_doccano(write(form.format(TEXT))) == (["a"] * 2, [[]] * 2)
