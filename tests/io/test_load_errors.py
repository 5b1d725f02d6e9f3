import copy
import hashlib
import json
import re
import shutil
from pathlib import Path

import huggingface_hub
import pytest
from safetensors.torch import load_file, save_file

from skdice import DicePairClassifier, DiceTokenTagger
from skdice.estimators import _saving, load_pretrained


def changed(name, edit):
    """Return a function that changes a JSON file in place, with all digests right."""

    def change(directory):
        content = json.loads((directory / name).read_text())
        edit(content)
        (directory / name).write_text(json.dumps(content))
        if name != "skdice.json" and (directory / "skdice.json").exists():
            sign(directory)

    return change


def sign(directory):
    """Give the manifest the digests of the files that are there, as another program could."""
    content = json.loads((directory / "skdice.json").read_text())
    for name in content["sha256"]:
        content["sha256"][name] = hashlib.sha256((directory / name).read_bytes()).hexdigest()
    (directory / "skdice.json").write_text(json.dumps(content))


def manifest(edit):
    return changed("skdice.json", edit)


def config(**entries):
    return changed("config.json", lambda content: content.update(entries))


class Tagger(DiceTokenTagger):
    """A class of a user."""


def rewritten(name, change):
    return lambda directory: (directory / name).write_bytes(change((directory / name).read_bytes()))


def remove(name):
    return lambda directory: (directory / name).unlink()


def linked(name):
    def damage(directory):
        (directory / name).rename(directory.parent / "elsewhere")
        (directory / name).symlink_to(directory.parent / "elsewhere")

    return damage


def in_snapshots(directory):
    """Have a link to the directory, whose parent is called as in the cache of a hub."""
    linked("config.json")(directory)
    snapshots = directory.parent / "snapshots"
    snapshots.mkdir()
    directory.rename(snapshots / directory.name)
    directory.symlink_to(snapshots / directory.name)


def pickled_in_place_of_weights(directory):
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
    listed = lambda c: c["sha256"].pop("model.safetensors")  # noqa: E731
    manifest(lambda c: c["sha256"].update({"pytorch_model.bin": listed(c)}))(directory)
    sign(directory)


def without_a_weight(directory):
    weights = load_file(directory / "model.safetensors")
    weights.pop("classifier.bias")
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    sign(directory)


def network(**entries):
    return manifest(lambda content: content["network"].update(entries))


def field(name, value):
    """Change a value of the task, of a part which JSON has as pairs of a name and a value."""

    def edit(content):
        entries = [entry["value"] for entry in content["fitted"]["task"]["value"][1]]
        next(entry for entry in entries if entry[0] == name)[1] = value

    return manifest(edit)


CODE = {"auto_map": {"AutoModel": "evil.Model"}}
DAMAGES = {
    "changed weights": (rewritten("model.safetensors", lambda data: data[:-1] + b"x"),
                        "model.safetensors was changed"),
    "no tokenizer": (remove("tokenizer_config.json"), "tokenizer_config.json is missing, or"),
    "truncated manifest": (rewritten("skdice.json", lambda data: data[:700]), "is no JSON"),
    "no manifest": (remove("skdice.json"), "was not saved by skdice"),
    "older": (manifest(lambda c: c.update(format_version=2)), "has format 2, .* or fit again"),
    "unknown class": (manifest(lambda c: c.update(estimator="DiceOracle")), "holds a DiceOracle"),
    "no class": (manifest(lambda c: c.pop("estimator")), "does not name the class"),
    "an unknown scheme": (field("scheme", "foo"), "'scheme' parameter of skdice.json .* Got 'foo'"),
    "classes that are no array": (field("classes", "B-PER"), "classes must be of type .*ndarray"),
    "a CRF that is no bool": (field("crf", "yes"), "crf must be of type bool | None; got 'yes'"),
    "an unknown precision": (network(predict_precision="fp8"), "'predict_precision' .* Got 'fp8'"),
    "windows without a length": (network(max_length=-1), "'max_length' .* Got -1"),
    "no history": (manifest(lambda c: c["fitted"].update(history="a")), "history must be of type"),
    "too many layers": (config(num_hidden_layers=10**6), "'num_hidden_layers': 1000000, and the"),
    "a bias that is too large": (field("bias", 1e308), "background_bias_.* Got 1e.308"),
    "a threshold that is NaN": (field("threshold", {"type": "float", "value": "nan"}), "Got nan"),
    "unknown parameter": (manifest(lambda c: c["parameters"].update(colour=1)), "colour"),
    "no task": (manifest(lambda c: c["fitted"].pop("task")), "task"),
    "other files":
        (manifest(lambda c: c["sha256"].update({"../a": ""})), "loaded: ../a is missing"),
    "a weight less": (without_a_weight, "no weights classifier.bias"),
    "another network": (config(num_hidden_layers=3), "no weights of the right shape .*layer.2"),
    # Nothing is unpickled.
    "pickled weights": (pickled_in_place_of_weights, "loaded: pytorch_model.bin is missing"),
    "a pickle":
        (manifest(lambda c: c["parameters"].update(lr={"type": "pickle", "value": "x"})), "pickle"),
    # No code is run.
    "another loss": (manifest(lambda c: c["fitted"].update(
        loss={"type": "object", "value": ["os.system", []]})), "there is no loss 'os.system'"),
    "code of a model": (config(**CODE), "'auto_map', which names code"),
    "code of a tokenizer":
        (changed("tokenizer_config.json", lambda content: content.update(CODE)),
         "'auto_map', which names code"),
    "kernel of a part": (config(encoder={"_attn_implementation": {"": "a/b@main"}}), "on a hub"),
    # No path leads elsewhere.
    "other weights": (config(transformers_weights="../other.safetensors"), "names code or files"),
    "link": (linked("config.json"), "config.json is a link out of it"),
    "link in a folder called snapshots": (in_snapshots, "config.json is a link out of it"),
    # What is not listed is not read.
    "no digest of a file":
        (manifest(lambda c: c["sha256"].pop("config.json")), "config.json"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_directories(copied_tagger, name):
    damage, message = DAMAGES[name]
    damage(copied_tagger)
    with pytest.raises(ValueError, match=message) as caught:
        load_pretrained(copied_tagger)
    assert str(copied_tagger.resolve()) in str(caught.value)


NAN = {"type": "float", "value": "nan"}
ONE = {"type": "array", "value": ["<f8", [1], [0.5]]}
ROW = {"type": "array", "value": ["<f8", [3], [0.0, 0.0, NAN]]}


def decision(name, *entries):
    return field("decision", {"type": "object", "value": [name, [*map(list, entries)]]})


@pytest.mark.parametrize("case, damage, message", [
    ("pairs", decision("BinaryThreshold", ("cuts", ROW), ("positive", 1)), "that are numbers.*nan"),
    ("pairs", decision("BinaryThreshold", ("cuts", ONE), ("positive", 2)), "2 classes.*itive=2"),
    ("pairs", decision("BinaryThreshold", ("cuts", "high"), ("positive", 1)), "cuts='high'"),
    ("texts", decision("BinaryThreshold", ("cuts", ONE), ("positive", 1)), "the 3 classes"),
    ("texts", decision("ShiftedArgmax", ("cuts", ROW)), "that are numbers.*nan"),
    ("labels", decision("LabelThresholds", ("cuts", ROW)), "that are numbers.*nan"),
    ("labels", decision("LabelThresholds", ("cuts", [0.0, 0.0])), r"that are numbers.*cuts=\[0.0"),
    ("labels", field("decision", None), "has no attribute 'cuts'"),
    ("questions", field("null_threshold", NAN), "'null_threshold_' .* Got nan"),
    ("questions", field("null_threshold", None), "null_threshold is open"),
    ("queries", field("threshold", NAN), "'threshold_' .* Got nan"),
    ("queries", field("threshold", {"type": "dict", "value": [["XYZ", 0.5]]}), "Got 'XYZ'"),
    ("tagger", field("bias", {"type": "dict", "value": [["PER", 1e308]]}), "background_bias_ of P"),
])  # fmt: skip
def test_a_decision_that_cannot_decide(fitted, tmp_path, case, damage, message):
    fitted(case)[0].save_pretrained(tmp_path / "saved")
    damage(tmp_path / "saved")
    with pytest.raises(ValueError, match=message):
        load_pretrained(tmp_path / "saved")


@pytest.mark.parametrize("name, value, message", [
    ("num_hidden_layers", 10**6, "'num_hidden_layers': 1000000, and the weights file has"),
    ("attn_implementation", "a/b", r"'attn_implementation': 'a/b', which may be code"),
])  # fmt: skip
def test_base_models_that_are_refused(own_bert, name, value, message):
    config(**{name: value})(own_bert)
    with pytest.raises(ValueError, match=message):
        DiceTokenTagger(own_bert, verbose=0).fit([["a"], ["b"]], [["X"], ["Y"]])


def test_the_cache_of_a_hub_has_links(saved_tagger, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--me--tagger" / "snapshots" / "1234"
    blobs = tmp_path / "models--me--tagger" / "blobs"
    shutil.copytree(saved_tagger, blobs)
    snapshot.mkdir(parents=True)
    for path in [*blobs.iterdir(), blobs / "LICENSE"]:
        path.touch()
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    assert type(load_pretrained(snapshot)) is DiceTokenTagger
    linked("config.json")(blobs)
    shutil.move(blobs.parent / "elsewhere", tmp_path)
    (blobs / "config.json").unlink()
    (blobs / "config.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"config.json is a link out of it"):
        load_pretrained(snapshot)


# What transformers would read if it were beside the model, and what people add.
ADDED = [
    *("adapter_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja"),
    *("model.safetensors.index.json", "pytorch_model.bin", "generation_config.json", "LICENSE"),
    *("head.safetensors", "runs/events", "skdice.json.orig", "README.md", ".gitattributes"),
]


def test_files_that_were_added_are_not_read(copied_tagger, fitted, monkeypatch):
    estimator, X, _ = fitted("tagger")
    for name in ADDED:
        (copied_tagger / name).parent.mkdir(exist_ok=True)
        (copied_tagger / name).write_text('{"base_model_name_or_path": "x/y"}')
    read, check = [], _saving.WordTokenizer
    monkeypatch.setattr(_saving, "WordTokenizer", lambda path: read.append(path) or check(path))
    loaded = load_pretrained(copied_tagger)
    assert loaded.predict(X).tolist() == estimator.predict(X).tolist()
    assert not Path(read[0]).exists(), "they were read elsewhere, without the others"


def test_a_missing_onnx_file_is_no_damage(copied_tagger, fitted):
    estimator, X, _ = fitted("tagger")
    manifest(lambda content: content["sha256"].update({"model.onnx": "0" * 64}))(copied_tagger)
    with pytest.warns(UserWarning, match=r"model.onnx was saved with .*copy.* and is missing"):
        loaded = load_pretrained(copied_tagger)
    assert loaded.predict(X).tolist() == estimator.predict(X).tolist()
    (copied_tagger / "model.onnx").write_bytes(b"")
    with pytest.raises(ValueError, match=r"model.onnx was changed after it was saved"):
        load_pretrained(copied_tagger)


@pytest.mark.parametrize("load", [load_pretrained, DiceTokenTagger.from_pretrained])
def test_no_directory(load, tmp_path, tiny_bert):
    (tmp_path / "file").touch()
    for path, error, message in (
        (tmp_path / "nowhere", ValueError, r"nowhere' is no directory here, and no 'user/model'"),
        ("organisation/tagger", ValueError, r"is no directory here, and the hub did not give it"),
        (tmp_path / "file", ValueError, r"There is no skdice.json in .*file'"),
        (tiny_bert, ValueError, r"There is no skdice.json .* base of an estimator"),
        (None, TypeError, "directory must be a path.*got None"),
        ("", TypeError, "directory must be a path.*got ''"),
        ("a\0b", ValueError, r"a path, which has no NUL; got 'a\\x00b'"),
        ("x" * 5000, ValueError, r"^'x{199} is no directory here, and no 'user/model'"),
        ("user/a b", ValueError, r"no 'user/model' of a hub"),
    ):
        with pytest.raises(error, match=message):
            load(path)


def test_another_class_and_one_of_a_user(saved_tagger, tiny_bert, tmp_path):
    message = "holds a DiceTokenTagger, not a DicePairClassifier. Call DiceTokenTagger.from_pre"
    with pytest.raises(ValueError, match=re.escape(message)):
        DicePairClassifier.from_pretrained(saved_tagger)
    X, y = [["a", "b"], ["c"]], [["X", "Y"], ["Y"]]
    tagger = Tagger(tiny_bert, max_epochs=1, random_state=0, verbose=0).fit(X, y)
    tagger.save_pretrained(tmp_path / "own")
    for load in (Tagger.from_pretrained, load_pretrained):
        loaded = load(tmp_path / "own")
        assert type(loaded) is Tagger
        assert loaded.predict(X).tolist() == tagger.predict(X).tolist()


def test_a_device_is_no_part_of_a_model(copied_tagger, fitted, tmp_path):
    estimator = copy.copy(fitted("tagger")[0]).set_params(device="cuda:99")
    estimator.save_pretrained(tmp_path / "other")
    assert "cuda:99" not in (tmp_path / "other" / "skdice.json").read_text()
    assert load_pretrained(tmp_path / "other").device == "auto"
    assert load_pretrained(copied_tagger, device="cpu").device == "cpu"
    with pytest.raises(ValueError, match=r"^The 'device' parameter must be one of {'auto', 'cpu'"):
        load_pretrained(copied_tagger, device="cuda:99")
