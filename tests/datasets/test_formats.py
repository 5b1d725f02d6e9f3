"""What a file holds, told by its name and its first lines."""

import gzip

import pytest

from skdice.datasets import find_format

CONLLU = "# text = Hi\n1\tHi\t_\tINTJ\tUH\t_\t_\t_\t_\t_\n\n"
SQUAD = """{"data": [{"paragraphs": [{"context": "Anna.", "qas": [
    {"id": 1, "question": "Who?", "answers": [{"text": "Anna", "answer_start": 0}]}]}]}]}
"""


@pytest.mark.parametrize(
    "name, content, expected",
    [
        ("a.txt", "Anna NNP B-PER\nsmiles VBZ O\n\nHi UH O\n", "conll"),
        ("a.tsv", "Anna\tB-PER\r\nsmiles\tO\r\n\r\nHi\tO\r\n", "conll"),
        ("a.txt", "-DOCSTART- O\nAnna B-PER\nsmiles O\n", "conll"),
        # One sentence alone looks like anything else, unless the name says it.
        ("a.conll", "Anna B-PER\nsmiles O\n", "conll"),
        ("a.bio", "Anna B-PER\nsmiles O\n", "conll"),
        # A bad line is for the reader to name.
        ("a.tsv", "Anna\tO\nsmiles\n\nHi\tO\nyou\tO\n", "conll"),
        # Columns of numbers are no label if nothing beside them is a text.
        ("a.tsv", "Anna\tNNP\t0\nsmiles\tVBZ\t1\n\nHi\tUH\t0\n", "conll"),
        ("a.txt", CONLLU, "conllu"),
        ("a.conllu", "1 Hi\n", "conllu"),
        ("a.txt", CONLLU.replace("\n1\t", "\n1-2\tHiya" + "\t_" * 8 + "\n1\t"), "conllu"),
        ("a.tsv", "sentence1\tsentence2\tlabel\nHi you\tHello\t1\n", "pairs"),
        (
            "a.txt",
            "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t2\t3\ta b\tc d\n",
            "pairs",
        ),
        ("a.txt", "COL t VAL a\tCOL t VAL b\t0\nCOL t VAL a\tCOL t VAL c\t1\n", "pairs"),
        ("a.tsv", "1\thow so\twhy\t7\n0\thow so\tbye\t8\n", "pairs"),
        ("a.tsv", "ham\tSee you at 8.\nspam\tYou won!\n", "labeled text"),
        ("a.tsv", "ham\tSee you at 8.\n\nspam\tYou won!\n", "labeled text"),
        ("a.txt", "1 a stirring film\n0 a bad one\n", "labeled text"),
        ("a.txt", "1 a stirring film\n\n0 a bad one\n0 bad\n", "labeled text"),
        ("a.tsv", "id\ttext\tlabel\n1\tGood\t1\n", "labeled text"),
        ("a.tsv", "See you at 8.\tham\nBye\tham\n", "labeled text"),
        ("a.json", '{"tokens": ["Hi"], "tags": ["O"], "id": 1}\n', "tagged json"),
        ("a.jsonl", '\n{"text": "Hi", "label": "ham"}\n', "labeled json"),
        ("a.csv", "id,body,mood\n7,Hello,1\n", "labeled text"),
        ("a.txt", SQUAD, "squad"),
        ("a.json", "[]", "squad"),
        ("a.txt", "Anna\tB-PER\nsmiles\tO\n", None),
        ("a.tsv", "a\tb\tc\td\te\n1 x\t2\t3\t4\t5\n", None),
        ("a.txt", "nothing\n", None),
        ("a.txt", "", None),
        ("a.txt", "\n \n\t\n", None),
    ],
)
@pytest.mark.parametrize("suffix, compress", [("", bytes), (".gz", gzip.compress)])
def test_table(tmp_path, name, content, expected, suffix, compress):
    path = tmp_path / (name + suffix)
    path.write_bytes(compress(content.encode("utf-8")))
    assert find_format(path) == expected
