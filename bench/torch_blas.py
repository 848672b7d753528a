"""What the comparisons with PyTorch share: how fast its matrix products are, on standard error."""

import sys
import time

import torch


def tell_blas():
    torch.set_num_threads(1)
    a, best = torch.ones(512, 512), 1e9
    for _ in range(5):
        start = time.process_time()
        torch.mm(a, a)
        best = min(best, time.process_time() - start)
    print(f"BLAS: {2 * 512**3 / best / 1e9:.0f} GFLOP/s on one thread", file=sys.stderr)
