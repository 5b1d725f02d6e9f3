"""What cannot be loaded says which directory, what is wrong, and what to do."""

import hashlib
import json
import os
import re
import shutil
import sys
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from skdice import DicePairClassifier, DiceTokenTagger
from skdice.estimators import load_pretrained


def content_of(directory):
    return json.loads((directory / "skdice.json").read_text())


def write(directory, content):
    """Write skdice.json and sign it, as another program could."""
    content.pop("sha256", None)
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    (directory / "skdice.json").write_text(json.dumps({**content, "sha256": digest}))


def change(directory, **entries):
    write(directory, {**content_of(directory), **entries})


def change_json(path, **entries):
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


def truncate(name, keep):
    return lambda d: (d / name).write_bytes((d / name).read_bytes()[:keep])


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
    path.write_text(path.read_text().replace('"bias",\n          0.0', '"bias",\n          9.0'))


def with_part(entry, **values):
    """Set what is in an entry of skdice.json."""
    return lambda d: change(d, **{entry: {**content_of(d)[entry], **values}})


def with_task(**values):
    """Set fields of the task in skdice.json."""

    def damage(directory):
        state = content_of(directory)["state"]
        task = dict(state["_learned_task"]["items"])
        state["_learned_task"]["items"] = [list(item) for item in {**task, **values}.items()]
        change(directory, state=state)

    return damage


def without(entry, name=None):
    def damage(directory):
        content = content_of(directory)
        if name is None:
            del content[entry]
        else:
            del content[entry][name]
        write(directory, content)

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


CLASSES = {"type": "array", "dtype": "|O", "shape": [2], "values": ["B-PER", "O"]}


def only_pickled_weights(directory):
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
    files = content_of(directory)["files"]
    change(directory, files={"pytorch_model.bin": files.pop("model.safetensors"), **files})


DAMAGES = {
    "truncated weights": truncate("model.safetensors", 5000),
    "changed weights": flip("model.safetensors"),
    "changed config": flip("config.json"),
    "no weights": remove("model.safetensors"),
    "no tokenizer": remove("tokenizer_config.json"),
    "truncated manifest": truncate("skdice.json", 700),
    "empty manifest": truncate("skdice.json", 0),
    "no manifest": remove("skdice.json"),
    "binary": lambda d: (d / "skdice.json").write_bytes(b"\xff\xfe"),
    "changed threshold": edit_threshold,
    "no state": without("state"),
    "newer": lambda d: change(d, format_version=3, versions={"skdice": "9.1"}),
    "older": lambda d: change(d, format_version=1),
    "unknown class": lambda d: change(d, estimator="DiceOracle"),
    "no estimator": lambda d: change(d, estimator="load_pretrained"),
    "unknown parameter": with_part("parameters", colour=1),
    "unknown value": with_part("parameters", lr={"type": "pickle", "value": "x"}),
    "unknown loss": with_part(
        "parameters", loss={"type": "loss", "class": "os.system", "parameters": {}}
    ),
    "file elsewhere": with_part("files", **{"../secret": {"size": 1, "sha256": "0"}}),
    "pickled weights": only_pickled_weights,
    "code of a model": with_entries("config.json", auto_map={"A": "evil.A"}),
    "code of a tokenizer": with_entries("tokenizer_config.json", auto_map={"A": "evil.A"}),
    "code of a part of a model": with_entries(
        "config.json", encoder={"parts": [{"auto_map": {"A": "evil.A"}}]}
    ),
    "kernel": with_entries("config.json", attn_implementation="someone/kernel"),
    "kernel, privately": with_entries("config.json", _attn_implementation="someone/kernel@main"),
    "kernel of a part": with_entries(
        "config.json", encoder={"attn_implementation": {"": "someone/kernel"}}
    ),
    "other weights": with_entries("config.json", transformers_weights="other.safetensors"),
    "scheme of str": with_task(scheme=3),
    "fewer classes": with_task(classes=CLASSES),
    "a bias of str": with_task(bias="x"),
    "long windows": with_part("state", max_length_=10**9),
    "a method": with_part("state", predict="x"),
    "parameters of another kind": with_part("parameters", batch_size="x"),
    "an unknown loss by name": with_part("parameters", loss="os.system"),
    "another network": with_part("network", n_outputs=7),
    "an unknown precision": with_part("network", precision="fp8"),
    "no criterion": with_part("network", criterion=None),
    "a large array": with_part("parameters", class_weight={**CLASSES, "dtype": "<U1000000000"}),
    **{
        f"no {name}": without("state", name)
        for name in ("_learned_task", "max_length_", "history_", "choices_", "interrupted_")
    },
    "a field of no task": with_task(other=1),
    "an open parameter": with_task(crf=None),
    **{
        f"no {name}": without("network", name)
        for name in ("n_outputs", "criterion", "word_prefix", "precision")
    },
    "adapter": lambda d: (d / "adapter_config.json").write_text(
        '{"base_model_name_or_path": "x/y"}'
    ),
    "many layers": with_entries("config.json", num_hidden_layers=10**9),
    "large": with_entries("config.json", hidden_size=10**6),
    "many words": with_entries("config.json", vocab_size=10**9),
    "no layers": with_entries("config.json", num_hidden_layers=0),
    "more layers": with_entries("config.json", num_hidden_layers=3),
    "many positions": with_entries("config.json", max_position_embeddings=10**9),
    "far piece": with_piece(10**9),
    "odd piece": with_piece("x"),
    "odd activation": with_entries("config.json", hidden_act="os.system"),
    "odd size": with_entries("config.json", hidden_size="a"),
    "no heads": with_entries("config.json", num_attention_heads=0),
    "config is a list": rewritten("config.json", lambda _: []),
    "tokenizer is empty": rewritten("tokenizer.json", lambda _: {}),
    "fifo": fifo,
    "unlisted fifo": unlisted_fifo,
    "link": linked("config.json"),
    "link to the manifest": linked("skdice.json"),
    "no head": with_weights(lambda w: w.pop("classifier.bias")),
    "weights left over": with_weights(lambda w: w.update(evil=torch.zeros(3))),
    "other head": with_weights(lambda w: w.update({"other.weight": w.pop("classifier.weight")})),
    "inf": with_weights(lambda w: w["classifier.bias"].fill_(torch.inf)),
    "nan": with_weights(
        lambda w: w["bert.encoder.layer.0.output.dense.weight"][0].fill_(torch.nan)
    ),
    "other device": with_part("parameters", device="cuda:99"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_directories(copied_tagger, name):
    DAMAGES[name](copied_tagger)
    start = time.monotonic()
    with pytest.raises(ValueError, match=copied_tagger.name):
        load_pretrained(copied_tagger)
    assert time.monotonic() - start < 5  # What is endless, is so by far.


@pytest.mark.parametrize(
    "damage",
    [
        lambda head: head.pop("head.bias"),
        lambda head: head.update({"transformer.embeddings.word": torch.zeros(3)}),
        lambda head: head["head.bias"].fill_(torch.inf),
    ],
    ids=["missing", "left over", "inf"],
)
def test_damaged_heads(damage, fitted, tmp_path):
    """A query tagger has its head in a file of its own."""
    fitted("queries")[0].save_pretrained(tmp_path / "saved")
    head = load_file(tmp_path / "saved" / "head.safetensors")
    damage(head)
    save_file(head, tmp_path / "saved" / "head.safetensors")
    sign(tmp_path / "saved")
    with pytest.raises(ValueError, match=r"The weights in .*saved' are not"):
        load_pretrained(tmp_path / "saved")


def array(values, dtype="<f8"):
    return {"type": "array", "dtype": dtype, "shape": list(np.shape(values)), "values": values}


def table(buckets, counts, dtype="<i4"):
    """Frequencies of characters in place of those that were saved."""
    pair = {"type": "tuple", "values": [array(buckets, dtype), array(counts, "<i4")]}
    return lambda saved: {**saved, "items": [["characters", pair], *saved["items"][1:]]}


NAN = {"type": "float", "value": "nan"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("slope", {**array([1.0] * 5), "shape": [5, 1]}),
        ("start", array([1.0])),
        ("start", array([0.0, NAN])),
        ("start", "x"),
        ("share", 7.0),
        ("share", NAN),
        ("n_texts", "x"),
        ("n_texts", 1),
        ("frequencies", lambda saved: {**saved, "items": saved["items"][1:]}),
        ("frequencies", table([1, 2, 3], [2, 2])),
        ("frequencies", table([1, 2, 3], [2])),
        ("frequencies", table([1, 1], [2, 2])),
        ("frequencies", table([-1], [2])),
        ("frequencies", table([2**18], [2])),
        ("frequencies", table([1.0], [2], "<f8")),
        ("frequencies", table([1], [-9])),
        (None, {"cut": array([0.0, 0.0])}),
        (None, {"cut": NAN}),
    ],
)
def test_what_a_pair_classifier_decides_with(name, value, fitted, tmp_path):
    fitted("pairs")[0].save_pretrained(tmp_path / "saved")
    items = content_of(tmp_path / "saved")["state"]["_learned_task"]["items"]
    similarities = dict(items)["similarities"]
    if name is not None:
        saved = dict(similarities["fields"]["items"])
        saved[name] = value(saved[name]) if callable(value) else value
        similarities["fields"]["items"] = list(saved.items())
        value = {"similarities": similarities}
    with_task(**value)(tmp_path / "saved")
    with pytest.raises(ValueError, match=r"saved' is damaged: what it says of the fit cannot be"):
        load_pretrained(tmp_path / "saved")


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "skdice.json/../../secret"])
def test_weights_of_an_exported_network_lie_in_the_directory(copied_tagger, location):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime", "1.24")  # Older ones read any file.
    (copied_tagger.parent / "secret").write_bytes(bytes(64))
    weight = onnx.TensorProto(name="w", data_type=1, dims=[4], data_location=1)
    for key, value in (("location", location), ("offset", "0"), ("length", "16")):
        weight.external_data.add(key=key, value=value)
    values = [onnx.helper.make_tensor_value_info(name, 1, [4]) for name in "xy"]
    node = onnx.helper.make_node("Add", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([node], "g", values[:1], values[1:], [weight])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    (copied_tagger / "network.onnx").write_bytes(model.SerializeToString())
    with_part("parameters", runtime="onnx")(copied_tagger)
    with_part("files", **{"network.onnx": {}})(copied_tagger)
    sign(copied_tagger)
    with pytest.raises(ValueError, match="cannot read its exported network"):
        load_pretrained(copied_tagger)


NESTS = {
    "lists": lambda inner: [inner],
    "dicts": lambda inner: {"type": "dict", "items": [["a", inner]]},
    "losses": lambda inner: {"type": "loss", "class": "SpanLoss", "parameters": {"loss": inner}},
}
PLACES = [
    ("parameters", "loss"),
    ("network", "criterion"),
    ("state", "_learned_task"),
    ("files", "config.json"),
    ("versions", "skdice"),
]


@pytest.mark.parametrize("nest", NESTS)
@pytest.mark.parametrize("entry, name", PLACES)
def test_hundreds_of_levels(copied_tagger, nest, entry, name):
    """With a digest that is right."""
    limit, saved = sys.getrecursionlimit(), content_of(copied_tagger)
    for n_levels in (100, 200, 450, 900):
        deep = {"type": "loss", "class": "DiceLoss", "parameters": {}}
        for _ in range(n_levels):
            deep = NESTS[nest](deep)
        sys.setrecursionlimit(50_000)  # To write it.
        change(copied_tagger, **{entry: {**saved[entry], name: deep}})
        sys.setrecursionlimit(limit)
        with pytest.raises(ValueError, match="is damaged"):
            load_pretrained(copied_tagger)
        (copied_tagger / "skdice.json").write_text(json.dumps(saved))


def test_the_cache_of_a_hub_has_links(saved_tagger, tmp_path):
    snapshot = tmp_path / "models--me--tagger" / "snapshots" / "1234"
    blobs = tmp_path / "models--me--tagger" / "blobs"
    shutil.copytree(saved_tagger, blobs)
    snapshot.mkdir(parents=True)
    for path in blobs.iterdir():
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    assert type(load_pretrained(snapshot)) is type(load_pretrained(saved_tagger))


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda base: change_json(base / "config.json", num_hidden_layers=10**9), "num_hidden_lay"),
        (lambda base: change_json(base / "config.json", attn_implementation="a/b"), "attn_impl"),
        (fifo, "config.json' is no file"),
    ],
)
def test_base_models(damage, message, tiny_bert, tmp_path):
    base = shutil.copytree(tiny_bert, tmp_path / "base")
    damage(base)
    with pytest.raises(ValueError, match=message):
        DiceTokenTagger(base, verbose=0).fit([["a"], ["b"]], [["X"], ["Y"]])


@pytest.mark.parametrize("load", [load_pretrained, DiceTokenTagger.from_pretrained])
def test_no_directory(load, tmp_path, tiny_bert):
    (tmp_path / "file").touch()
    for path, error, message in (
        (tmp_path / "nowhere", ValueError, r"There is no directory .*nowhere"),
        (tmp_path / "file", ValueError, "is a file; pass the directory that save_pretrained"),
        (tiny_bert, ValueError, r"has no skdice.json.* base of an estimator"),
        (None, TypeError, "directory must be a path.*got None"),
        ("", TypeError, "directory must be a path.*got ''"),
    ):
        with pytest.raises(error, match=message):
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
    with pytest.raises(ValueError, match=r"Call Tagger.from_pretrained"):
        load_pretrained(tmp_path / "own")


def test_what_people_add_is_no_damage(copied_tagger, fitted):
    (copied_tagger / "README.md").write_text("# Our tagger\n")
    (copied_tagger / ".gitattributes").write_text("*.safetensors filter=lfs\n")
    estimator, X, _ = fitted("tagger")
    assert load_pretrained(copied_tagger).predict(X).tolist() == estimator.predict(X).tolist()
