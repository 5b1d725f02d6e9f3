"""What cannot be loaded says which directory, what is wrong, and what to do."""

import hashlib
import json
import re

import pytest

from skdice import DicePairClassifier, DiceTokenTagger
from skdice.io import load_pretrained


def change(directory, **entries):
    """Change entries of skdice.json and sign it anew, as another program could."""
    path = directory / "skdice.json"
    content = {**json.loads(path.read_text()), **entries}
    del content["sha256"]
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({**content, "sha256": digest}))


def content_of(directory):
    return json.loads((directory / "skdice.json").read_text())


def truncate(name, keep):
    def damage(directory):
        path = directory / name
        path.write_bytes(path.read_bytes()[:keep])

    return damage


def flip(name):
    def damage(directory):
        path = directory / name
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)

    return damage


def remove(name):
    return lambda directory: (directory / name).unlink()


def edit_threshold(directory):
    path = directory / "skdice.json"
    path.write_text(path.read_text().replace('"background_bias_": 0.0', '"background_bias_": 9.0'))


def without(entry):
    def damage(directory):
        path = directory / "skdice.json"
        content = content_of(directory)
        del content[entry], content["sha256"]
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        path.write_text(json.dumps({**content, "sha256": digest}))

    return damage


def with_file(name):
    def damage(directory):
        files = {**content_of(directory)["files"], name: {"size": 1, "sha256": "0"}}
        change(directory, files=files)

    return damage


def with_code(name):
    """Add an entry that makes transformers ask for code, with all digests right."""

    def damage(directory):
        path = directory / name
        path.write_text(json.dumps({**json.loads(path.read_text()), "auto_map": {"A": "evil.A"}}))
        data = path.read_bytes()
        listed = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        change(directory, files={**content_of(directory)["files"], name: listed})

    return damage


def with_parameter(**values):
    return lambda directory: change(
        directory, parameters={**content_of(directory)["parameters"], **values}
    )


def only_pickled_weights(directory):
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
    files = content_of(directory)["files"]
    change(directory, files={"pytorch_model.bin": files.pop("model.safetensors"), **files})


DAMAGES = {
    "truncated weights": (truncate("model.safetensors", 5000), "has 5000 bytes, and 1"),
    "empty weights": (truncate("model.safetensors", 0), "has 0 bytes"),
    "changed weights": (flip("model.safetensors"), "model.safetensors was changed"),
    "changed config": (flip("config.json"), "config.json was changed"),
    "changed tokenizer": (flip("tokenizer.json"), "tokenizer.json was changed"),
    "no weights": (remove("model.safetensors"), "model.safetensors is missing"),
    "no tokenizer": (remove("tokenizer_config.json"), "tokenizer_config.json is missing"),
    "truncated manifest": (truncate("skdice.json", 700), "skdice.json is no JSON"),
    "empty manifest": (truncate("skdice.json", 0), "skdice.json is no JSON"),
    "no manifest": (remove("skdice.json"), "was not saved by skdice: it has no skdice.json"),
    "no object": (lambda d: (d / "skdice.json").write_text("[1]"), "no format_version"),
    "deep": (lambda d: (d / "skdice.json").write_text("[" * 10**6), "is no JSON"),
    "binary": (lambda d: (d / "skdice.json").write_bytes(b"\xff\xfe"), "is no JSON"),
    "changed threshold": (edit_threshold, "skdice.json was changed after"),
    "no state": (without("state"), "skdice.json has no 'state'"),
    "newer": (
        lambda d: change(d, format_version=2, versions={"skdice": "9.1"}),
        "format 2, saved by skdice 9.1; this skdice reads formats up to 1. Upgrade",
    ),
    "unknown class": (lambda d: change(d, estimator="DiceOracle"), "holds a DiceOracle"),
    "no estimator": (lambda d: change(d, estimator="load_pretrained"), "holds a load_pretrained"),
    "unknown parameter": (with_parameter(colour=1), "'colour', which DiceTokenTagger does not"),
    "unknown value": (
        with_parameter(lr={"type": "pickle", "value": "x"}),
        "has a value that cannot be read",
    ),
    "unknown loss": (
        with_parameter(loss={"type": "loss", "class": "os.system", "parameters": {}}),
        "has a value that cannot be read",
    ),
    "file elsewhere": (with_file("../secret"), "lists '../secret', which is no file of it"),
    "absolute file": (with_file("/etc/passwd"), "lists '/etc/passwd', which is no file of it"),
    "pickled weights": (only_pickled_weights, "lists no model.safetensors"),
    "code of a model": (with_code("config.json"), "config.json in .* has 'auto_map'"),
    "code of a tokenizer": (with_code("tokenizer_config.json"), "has 'auto_map'"),
    "other device": (with_parameter(device="cuda:99"), "device='cuda:99', which cannot be used"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_directories(copied_tagger, name):
    damage, message = DAMAGES[name]
    damage(copied_tagger)
    with pytest.raises(ValueError, match=message) as caught:
        load_pretrained(copied_tagger)
    assert str(copied_tagger) in str(caught.value)


@pytest.mark.parametrize("load", [load_pretrained, DiceTokenTagger.from_pretrained])
class TestNoDirectory:
    def test_missing(self, load, tmp_path):
        with pytest.raises(ValueError, match=r"There is no directory .*nowhere"):
            load(tmp_path / "nowhere")

    def test_file(self, load, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(ValueError, match="is a file; pass the directory that save_pretrained"):
            load(tmp_path / "file")

    def test_model_of_transformers(self, load, tiny_bert):
        with pytest.raises(ValueError, match=r"has no skdice.json.* base of an estimator"):
            load(tiny_bert)

    @pytest.mark.parametrize("path", [None, 3, ""])
    def test_no_path(self, load, path):
        with pytest.raises(TypeError, match=f"directory must be a path.*got {path!r}"):
            load(path)


def test_another_class(saved_tagger):
    message = "holds a DiceTokenTagger, not a DicePairClassifier. Call DiceTokenTagger.from_pre"
    with pytest.raises(ValueError, match=re.escape(message)):
        DicePairClassifier.from_pretrained(saved_tagger)


def test_an_own_class_loads_by_itself(fitted, tmp_path):
    class Tagger(DiceTokenTagger):
        pass

    estimator, X, _ = fitted("tagger")
    own = Tagger(**estimator.get_params())
    vars(own).update(vars(estimator))
    own.save_pretrained(tmp_path / "own")
    loaded = Tagger.from_pretrained(tmp_path / "own")
    assert loaded.predict(X).tolist() == estimator.predict(X).tolist()
    with pytest.raises(ValueError, match=r"or call Tagger.from_pretrained"):
        load_pretrained(tmp_path / "own")


def test_what_people_add_is_no_damage(copied_tagger, fitted):
    (copied_tagger / "README.md").write_text("# Our tagger\n")
    (copied_tagger / ".gitattributes").write_text("*.safetensors filter=lfs\n")
    (copied_tagger / "notes.txt").write_text("good\n")
    estimator, X, _ = fitted("tagger")
    assert load_pretrained(copied_tagger).predict(X).tolist() == estimator.predict(X).tolist()
    (copied_tagger / "README.md").unlink()
    load_pretrained(copied_tagger)


def test_a_moved_directory_behind_a_link(copied_tagger, tmp_path, fitted):
    (tmp_path / "link").symlink_to(copied_tagger)
    assert load_pretrained(tmp_path / "link").classes_.tolist() == ["B-LOC", "B-PER", "O"]
