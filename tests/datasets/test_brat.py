import pytest
from hypothesis import given, settings

from skdice.datasets import read_brat, write_brat
from skdice.text._entities import Entity

from .annotated import NESTED, SPANS, TEXTS, annotated_texts

TEXT = "Anna met Bo in Oslo.\nBo smiles."


@pytest.fixture
def write(tmp_path):
    def write(annotations, text=TEXT, name="a"):
        (tmp_path / f"{name}.txt").write_bytes(text.encode("utf-8"))
        path = tmp_path / f"{name}.ann"
        path.write_bytes(annotations.encode("utf-8"))
        return path

    return write


@pytest.mark.parametrize("spans", [SPANS, NESTED])
def test_round_trip(tmp_path, spans):
    write_brat(tmp_path / "new", TEXTS, spans)
    assert read_brat(tmp_path / "new") == (TEXTS, spans)
    assert read_brat(tmp_path / "new" / "0.ann") == (TEXTS[:1], spans[:1])


@settings(max_examples=60, deadline=None)
@given(annotated_texts())
def test_round_trip_of_any_text(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("brat")
    write_brat(path, *rows)
    assert read_brat(path) == rows


def test_files_sort_by_row(tmp_path):
    texts = [f"text {i}" for i in range(11)]
    write_brat(tmp_path, texts, [[]] * 11)
    assert sorted(file.name for file in tmp_path.iterdir())[:3] == ["00.ann", "00.txt", "01.ann"]
    assert read_brat(tmp_path)[0] == texts


def test_written_lines(tmp_path):
    write_brat(tmp_path, ["Anna\r\nBo\u2028x"], [[Entity(0, 6, "PER", 0.5), (0, 10, "ALL")]])
    assert (tmp_path / "0.ann").read_bytes() == (b"T1\tPER 0 6\tAnna  \nT2\tALL 0 10\tAnna  Bo x\n")


@pytest.mark.parametrize(
    "annotations, expected",
    [
        ("", []),
        ("T1\tPER 0 4\tAnna\n", [(0, 4, "PER")]),
        ("T1\tPER 0 4\tAnna\r\n\r\n", [(0, 4, "PER")]),
        ("T1\tPER 0 4", [(0, 4, "PER")]),
        ("T9\tLOC 15 19\tOslo\nT1\tPER 0 4\tAnna\n", [(0, 4, "PER"), (15, 19, "LOC")]),
        ("T1\tA-b_c 15 23\tOslo. Bo\n", [(15, 23, "A-b_c")]),
        ("T1\tX 15 20;21 23\tOslo. Bo\n", [(15, 23, "X")]),
        ("T1\tX 0 4;5 8;9 11\tAnna met Bo\n", [(0, 11, "X")]),
    ],
)
def test_entities(write, annotations, expected):
    assert read_brat(write(annotations)) == ([TEXT], [expected])


@pytest.mark.parametrize(
    "line", ["T1\tX 3 7\t met", "T1\tX 4 8\t met"], ids=["characters", "utf-16"]
)
def test_astral_characters(write, line):
    assert read_brat(write(line, "😀Bo met")) == (["😀Bo met"], [[(3, 7, "X")]])


def test_byte_order_mark_is_a_character(write):
    assert read_brat(write("T1\tX 1 3\tBo", "\ufeffBo")) == (["\ufeffBo"], [[(1, 3, "X")]])


def test_folders_in_order(write, tmp_path):
    for folder in ("b", "a"):
        (tmp_path / folder).mkdir()
        write("T1\tPER 0 1", folder, name=f"{folder}/x")
    assert read_brat(tmp_path)[0] == ["a", "b"]


def test_what_is_left_out_is_counted(write, tmp_path):
    write("", name="0")
    lines = [
        "T1\tPER 0 4\tAnna",
        "T2\tPER 9 11\tBo",
        "T3\tMeet 5 8\tmet",
        "T4\tX 0 4;9 11\tAnna Bo",
        "R1\tKnows Arg1:T1 Arg2:T2",
        "*\tEquiv T1 T2",
        "E1\tMeet:T3 Who:T1 Who2:T2",
        "A1\tNegation E1",
        "M1\tNegation E1",
        "N1\tReference T1 Wikidata:Q1\tAnna",
        "#1\tAnnotatorNotes T1\ta note",
        "#2\tAnnotatorNotes T1\tanother",
    ]
    write("\n".join(lines), name="1")
    (tmp_path / "README.txt").write_text("No annotations.", encoding="utf-8")
    with pytest.warns(UserWarning, match="left out") as record:
        X, y = read_brat(tmp_path)
    assert X == [TEXT, TEXT]
    assert y == [[], [(0, 4, "PER"), (5, 8, "Meet"), (9, 11, "PER")]]
    assert str(record[0].message) == (
        f"{tmp_path}: left out texts without an .ann file: 1; discontinuous entities: 1 (row 1); "
        "relations: 1 (row 1); equivalences: 1 (row 1); events: 1 (row 1); attributes: 2 (row 1); "
        "normalizations: 1 (row 1); notes: 2 (row 1)."
    )
    assert record[0].filename == __file__


@pytest.mark.parametrize(
    "line, message",
    [
        ("T1 PER 0 4 Anna", "got 'T1 PER 0 4 Anna', expected an ID, a TAB"),
        ("T1\tPER 0\tAnna", "expected an ID, a TAB"),
        ("T1\tPER -1 4\tAnna", "expected an ID, a TAB"),
        ("T1\tPER 0 4;\tAnna", "expected an ID, a TAB"),
        ("X1\tPER 0 4\tAnna", "expected an ID, a TAB"),
        ("T1\tPER 0 99\tAnna", "0 <= start < end <= 31, .* Got start 0 and end 99"),
        ("T1\tPER 4 4\t", "0 <= start < end <= 31"),
        ("T1\tPER 0 4\tBo", "the text from 0 to 4 is 'Anna', but the file says 'Bo'"),
        ("T1\tX 0 4;9 99\tAnna Bo", "0 <= start < end <= 31, .* Got start 9 and end 99"),
    ],
)
def test_errors(write, line, message):
    with pytest.raises(ValueError, match=r"a\.ann, line 2: .*" + message):
        read_brat(write(f"T1\tPER 0 4\tAnna\n{line}\n"))


def test_missing_files(tmp_path):
    with pytest.raises(ValueError, match=r"the directory has no \.ann file"):
        read_brat(tmp_path)
    with pytest.raises(ValueError, match=r"An .ann file or a directory is expected. Got .*a\.txt"):
        read_brat(tmp_path / "a.txt")
    (tmp_path / "a.ann").touch()
    with pytest.raises(FileNotFoundError, match=r"a\.ann: there is no file a\.txt beside it"):
        read_brat(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"a\n\xff")
    with pytest.raises(ValueError, match=r"a\.txt, line 2: cannot decode the bytes"):
        read_brat(tmp_path)


@pytest.mark.parametrize("label", ["A B", "A\tB", "A\u00a0B", " A"])
def test_labels_with_white_space_are_refused(tmp_path, label):
    with pytest.raises(ValueError, match="Labels for brat must have no white space; row 1 of y"):
        write_brat(tmp_path / "new", ["a", "b"], [[], [(0, 1, label)]])
    assert not (tmp_path / "new").exists()


def test_a_directory_with_files_is_left_alone(tmp_path):
    write_brat(tmp_path, ["a"], [[]])
    with pytest.raises(FileExistsError, match="is not empty"):
        write_brat(tmp_path, ["b"], [[]])
    assert read_brat(tmp_path)[0] == ["a"]
