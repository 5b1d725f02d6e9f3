"""What cannot be loaded says which directory, what is wrong, and what to do."""

import hashlib
import json
import os
import re
import shutil
import time

import pytest
import torch
from safetensors.torch import load_file, save_file

from skdice import DicePairClassifier, DiceTokenTagger
from skdice.estimators import load_pretrained


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


def rewritten(name, edit):
    """Change what a JSON file has, with all digests right."""

    def damage(directory):
        path = directory / name
        path.write_text(json.dumps(edit(json.loads(path.read_text()))))
        sign(directory)

    return damage


def sign(directory):
    """Give the manifest the digests of the files that are there."""
    files = {}
    for name in content_of(directory)["files"]:
        data = (directory / name).read_bytes()
        files[name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    change(directory, files=files)


def with_entries(name, **entries):
    return rewritten(name, lambda content: {**content, **entries})


def with_code(name):
    return with_entries(name, auto_map={"A": "evil.A"})


def with_piece(number):
    def edit(content):
        content["model"]["vocab"]["oslo"] = number
        return content

    return rewritten("tokenizer.json", edit)


def with_weights(edit):
    """Change the weights in place, with all digests right."""

    def damage(directory):
        weights = load_file(directory / "model.safetensors")
        edit(weights)
        save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
        sign(directory)

    return damage


def linked(name):
    def damage(directory):
        (directory / name).rename(directory.parent / "elsewhere")
        (directory / name).symlink_to(directory.parent / "elsewhere")

    return damage


def fifo(directory):
    (directory / "config.json").unlink()
    os.mkfifo(directory / "config.json")


def unlisted_fifo(directory):
    files = content_of(directory)["files"]
    del files["config.json"]
    change(directory, files=files)
    fifo(directory)


def with_parameter(**values):
    return lambda directory: change(
        directory, parameters={**content_of(directory)["parameters"], **values}
    )


def with_state(**values):
    return lambda directory: change(directory, state={**content_of(directory)["state"], **values})


def without_part(entry, name):
    def damage(directory):
        part = content_of(directory)[entry]
        del part[name]
        change(directory, **{entry: part})

    return damage


def with_network(**values):
    return lambda directory: change(
        directory, network={**content_of(directory)["network"], **values}
    )


CLASSES = {"type": "array", "dtype": "|O", "shape": [2], "values": ["B-PER", "O"]}


def only_pickled_weights(directory):
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
    files = content_of(directory)["files"]
    change(directory, files={"pytorch_model.bin": files.pop("model.safetensors"), **files})


DAMAGES = {
    "truncated weights": truncate("model.safetensors", 5000),
    "empty weights": truncate("model.safetensors", 0),
    "changed weights": flip("model.safetensors"),
    "changed config": flip("config.json"),
    "changed tokenizer": flip("tokenizer.json"),
    "no weights": remove("model.safetensors"),
    "no tokenizer": remove("tokenizer_config.json"),
    "truncated manifest": truncate("skdice.json", 700),
    "empty manifest": truncate("skdice.json", 0),
    "no manifest": remove("skdice.json"),
    "no object": lambda d: (d / "skdice.json").write_text("[1]"),
    "deep": lambda d: (d / "skdice.json").write_text("[" * 10**6),
    "binary": lambda d: (d / "skdice.json").write_bytes(b"\xff\xfe"),
    "changed threshold": edit_threshold,
    "no state": without("state"),
    "newer": lambda d: change(d, format_version=2, versions={"skdice": "9.1"}),
    "unknown class": lambda d: change(d, estimator="DiceOracle"),
    "no estimator": lambda d: change(d, estimator="load_pretrained"),
    "unknown parameter": with_parameter(colour=1),
    "unknown value": with_parameter(lr={"type": "pickle", "value": "x"}),
    "unknown loss": with_parameter(loss={"type": "loss", "class": "os.system", "parameters": {}}),
    "file elsewhere": with_file("../secret"),
    "absolute file": with_file("/etc/passwd"),
    "pickled weights": only_pickled_weights,
    "code of a model": with_code("config.json"),
    "code of a tokenizer": with_code("tokenizer_config.json"),
    "code of a part of a model": with_entries(
        "config.json", encoder={"parts": [{"auto_map": {"A": "evil.A"}}]}
    ),
    "kernel": with_entries("config.json", attn_implementation="someone/kernel"),
    "kernel, privately": with_entries("config.json", _attn_implementation="someone/kernel@main"),
    "kernel of a part": with_entries(
        "config.json", encoder={"attn_implementation": {"": "someone/kernel"}}
    ),
    "kernel in place of a package": with_entries(
        "config.json", attn_implementation="flash_attention_2"
    ),
    "other weights": with_entries("config.json", transformers_weights="other.safetensors"),
    "scheme of str": with_state(scheme_=3),
    "fewer classes": with_state(classes_=CLASSES),
    "classes of another kind": with_state(classes_="O"),
    "a bias of str": with_state(background_bias_="x"),
    "long windows": with_state(max_length_=10**9),
    "no windows": with_state(max_length_=True),
    "a method": with_state(predict="x"),
    "parameters of another kind": with_parameter(batch_size="x"),
    "an unknown loss by name": with_parameter(loss="os.system"),
    "another network": with_network(n_outputs=7),
    "an unknown precision": with_network(precision="fp8"),
    "no criterion": with_network(criterion=None),
    "a large array": with_parameter(class_weight={**CLASSES, "dtype": "<U1000000000"}),
    **{
        f"no {name}": without_part("state", name)
        for name in ("classes_", "scheme_", "max_length_", "history_", "interrupted_")
    },
    **{
        f"no {name}": without_part("network", name)
        for name in ("n_outputs", "criterion", "word_prefix", "precision")
    },
    "adapter": lambda d: (d / "adapter_config.json").write_text(
        '{"base_model_name_or_path": "x/y"}'
    ),
    "many layers": with_entries("config.json", num_hidden_layers=10**9),
    "no layers": with_entries("config.json", num_hidden_layers=0),
    "fewer layers": with_entries("config.json", num_hidden_layers=1),
    "more layers": with_entries("config.json", num_hidden_layers=3),
    "many words": with_entries("config.json", vocab_size=10**9),
    "large": with_entries("config.json", hidden_size=10**6),
    "many positions": with_entries("config.json", max_position_embeddings=10**9),
    "far piece": with_piece(10**9),
    "odd piece": with_piece("x"),
    "odd size": with_entries("config.json", hidden_size="a"),
    "odd activation": with_entries("config.json", hidden_act="os.system"),
    "odd type": with_entries("config.json", dtype="x"),
    "no heads": with_entries("config.json", num_attention_heads=0),
    "config is a list": rewritten("config.json", lambda _: []),
    "tokenizer config is a list": rewritten("tokenizer_config.json", lambda _: []),
    "tokenizer is empty": rewritten("tokenizer.json", lambda _: {}),
    "fifo": fifo,
    "unlisted fifo": unlisted_fifo,
    "link": linked("config.json"),
    "link to weights": linked("model.safetensors"),
    "link to the manifest": linked("skdice.json"),
    "no head": with_weights(lambda w: w.pop("classifier.bias")),
    "head of another shape": with_weights(
        lambda w: w.update({"classifier.weight": torch.zeros(5, 32)})
    ),
    "other head": with_weights(lambda w: w.update({"other.weight": w.pop("classifier.weight")})),
    "weights left over": with_weights(lambda w: w.update(evil=torch.zeros(3))),
    "inf": with_weights(lambda w: w["classifier.bias"].fill_(torch.inf)),
    "nan": with_weights(
        lambda w: w["bert.encoder.layer.0.output.dense.weight"][0].fill_(torch.nan)
    ),
    "other device": with_parameter(device="cuda:99"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_directories(copied_tagger, name):
    DAMAGES[name](copied_tagger)
    start = time.monotonic()
    with pytest.raises(ValueError, match=copied_tagger.name):
        load_pretrained(copied_tagger)
    assert time.monotonic() - start < 5  # What is endless, is so by far.


HEADS = {
    "missing": lambda head: head.pop("head.bias"),
    "of another shape": lambda head: head.update({"head.bias": torch.zeros(3)}),
    "left over": lambda head: head.update({"transformer.embeddings.word": torch.zeros(3)}),
    "inf": lambda head: head["head.bias"].fill_(torch.inf),
}


@pytest.mark.parametrize("name", HEADS)
def test_damaged_heads(name, fitted, tmp_path):
    """A query tagger has its head in a file of its own."""
    fitted("queries")[0].save_pretrained(tmp_path / "saved")
    head = load_file(tmp_path / "saved" / "head.safetensors")
    HEADS[name](head)
    save_file(head, tmp_path / "saved" / "head.safetensors")
    sign(tmp_path / "saved")
    with pytest.raises(ValueError, match=r"The weights in .*saved' are not") as caught:
        load_pretrained(tmp_path / "saved")
    assert "head.bias" in str(caught.value) or name == "left over"


def test_the_cache_of_a_hub_has_links(saved_tagger, tmp_path):
    snapshot = tmp_path / "models--me--tagger" / "snapshots" / "1234"
    blobs = tmp_path / "models--me--tagger" / "blobs"
    shutil.copytree(saved_tagger, blobs)
    snapshot.mkdir(parents=True)
    for path in blobs.iterdir():
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    assert type(load_pretrained(snapshot)) is type(load_pretrained(saved_tagger))


@pytest.mark.parametrize("entry", [{"num_hidden_layers": 10**9}, {"attn_implementation": "a/b"}])
def test_base_models(entry, tiny_bert, tmp_path):
    shutil.copytree(tiny_bert, tmp_path / "base")
    path = tmp_path / "base" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entry}))
    with pytest.raises(ValueError, match=next(iter(entry))):
        DiceTokenTagger(tmp_path / "base", verbose=0).fit([["a"], ["b"]], [["X"], ["Y"]])


def test_a_base_model_whose_configuration_never_ends(tiny_bert, tmp_path):
    shutil.copytree(tiny_bert, tmp_path / "base")
    fifo(tmp_path / "base")
    with pytest.raises(ValueError, match=r"config.json' is no file"):
        DiceTokenTagger(tmp_path / "base", verbose=0).fit([["a"], ["b"]], [["X"], ["Y"]])


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
