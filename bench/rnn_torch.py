#!/usr/bin/env python3
"""rnn_torch.py [REPEAT [SHAPE [PRECISION]]]: the table of bench_rnn, for PyTorch; bf16: under autocast.

A step is forward and backward of embedding, LSTM or GRU, [dense, ReLU] and a linear layer, with binary
cross-entropy and no optimiser. The embedding has the batch's distinct words only, as in bench_rnn. Each
shape is tried with batch_first and without, and rows of different length padded and packed; the best of all
is printed: wall-clock and processor time, in milliseconds.

PyTorch is as fast as its BLAS. Debian's OpenBLAS (libopenblas0-pthread) does not know newer CPUs:
OPENBLAS_CORETYPE=SkylakeX is set unless something else is. The speed of a plain product is told on stderr; if
it is below 50 GFLOP/s on a CPU with AVX-512, the comparison means nothing.
"""
import math
import os
import random
import sys
import time

os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
import torch  # noqa: E402
from torch import nn  # noqa: E402

from torch_blas import tell_blas  # noqa: E402

WORDS, LENGTH = 20000, 100

# name, rows, embed, hidden, layers, dense, cell, dropout, both
SHAPES = [
    ("A", 128, 100, 32, 2, 32, nn.LSTM, 0.0, False),
    ("B64-H128", 64, 128, 128, 1, 0, nn.LSTM, 0.0, False),
    ("B256-H128", 256, 128, 128, 1, 0, nn.LSTM, 0.0, False),
    ("B64-H256", 64, 128, 256, 1, 0, nn.LSTM, 0.0, False),
    ("B256-H256", 256, 128, 256, 1, 0, nn.LSTM, 0.0, False),
    ("A-gru", 128, 100, 32, 2, 32, nn.GRU, 0.0, False),
    ("A-drop", 128, 100, 32, 2, 32, nn.LSTM, 0.5, False),
    ("A-both", 128, 100, 32, 2, 32, nn.LSTM, 0.0, True),
]


def make_rows(rows, full, rng):
    weights = [1 / (rank + 1) for rank in range(WORDS)]
    draw = lambda: max(1, min(LENGTH, int(50 * math.exp(0.6 * rng.gauss(0, 1)))))
    lengths = [LENGTH if full else draw() for _ in range(rows)]
    lengths.sort(reverse=True)
    slots, ids = {}, []
    for length in lengths:
        words = rng.choices(range(WORDS), weights, k=length)
        ids.append([slots.setdefault(word, len(slots)) for word in words] + [0] * (LENGTH - length))
    return torch.tensor(ids), torch.tensor(lengths), len(slots)


class Network(nn.Module):
    def __init__(self, slots, embed, hidden, layers, dense, cell, dropout, both, batch_first):
        super().__init__()
        self.embedding = nn.Embedding(slots, embed)
        self.rnn = cell(embed, hidden, layers, batch_first=batch_first, dropout=dropout, bidirectional=both)
        pooled = hidden * (2 if both else 1)
        self.head = nn.Linear(pooled, 1)
        if dense:
            self.head = nn.Sequential(nn.Linear(pooled, dense), nn.ReLU(), nn.Linear(dense, 1))
        self.layers, self.both, self.batch_first, self.drop = layers, both, batch_first, nn.Dropout(dropout)

    def forward(self, ids, lengths, packed):
        x = self.embedding(ids if self.batch_first else ids.t())
        if packed:
            x = nn.utils.rnn.pack_padded_sequence(x, lengths, self.batch_first)
        state = self.rnn(x)[1]
        state = state[0] if isinstance(state, tuple) else state
        last = torch.cat((state[-2], state[-1]), 1) if self.both else state[-1]
        return self.head(self.drop(last)).squeeze(1)


def measure(network, ids, lengths, packed, repeat, narrow):
    labels = torch.arange(len(lengths)).remainder(2).float()
    best = best_cpu = 1e9
    for _ in range(repeat):
        start, start_cpu = time.perf_counter(), time.process_time()
        network.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
            logits = network(ids, lengths, packed)
        nn.functional.binary_cross_entropy_with_logits(logits.float(), labels, reduction="sum").backward()
        best = min(best, time.perf_counter() - start)
        best_cpu = min(best_cpu, time.process_time() - start_cpu)
    return best, best_cpu


def main():
    repeat = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    only = sys.argv[2] if len(sys.argv) > 2 and sys.argv[2] != "all" else None
    narrow = len(sys.argv) > 3 and sys.argv[3] == "bf16"
    tell_blas()
    print(f"{'shape':10} {'rows':5} t {'slots':>6} {'ms':>9} {'cpu_ms':>9}")
    for name, rows, *shape in SHAPES:
        for full in (True, False):
            ids, lengths, slots = make_rows(rows, full, random.Random(1))
            for threads in (1, 2):
                if only and only != name:
                    continue
                torch.set_num_threads(threads)
                tried = [
                    measure(Network(slots, *shape, batch_first), ids, lengths, packed, repeat, narrow)
                    for batch_first in (True, False)
                    for packed in ((False,) if full else (False, True))
                ]
                best, best_cpu = (min(column) * 1e3 for column in zip(*tried))
                kind = "full" if full else "real"
                print(f"{name:10} {kind:5} {threads} {slots:6} {best:9.2f} {best_cpu:9.2f}", flush=True)


if __name__ == "__main__":
    main()
