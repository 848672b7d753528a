#!/usr/bin/env python3
"""cnn_torch.py [REPEAT [SHAPE [compile|bf16]]]: the table of bench_cnn, for PyTorch.

A step is forward and backward of the same network (ReLU6, batch norm in training) with cross-entropy, and SGD
with momentum. Each shape is tried with channels_last and without (only small ones: the other way is many times
slower for large ones), and the best is printed: wall-clock and processor time, in milliseconds. With `compile` networks
go through torch.compile first (channels_last), which is no part of the time; a PyTorch that has none prints an empty table. With `bf16`
training steps compute the loss under torch.autocast to bfloat16, and are called SHAPE-bf16.

PyTorch is as fast as its BLAS. Debian's OpenBLAS (libopenblas0-pthread) does not know newer CPUs:
OPENBLAS_CORETYPE=SkylakeX is set unless something else is. OMP_WAIT_POLICY is PASSIVE unless set.
"""
import os
import sys
import time

os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
import torch  # noqa: E402
from torch import nn  # noqa: E402

from torch_blas import tell_blas  # noqa: E402


def unit(inputs, outputs, kernel, stride=1, groups=1, act=nn.ReLU6):
    layers = [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, act(inplace=True)) if act else nn.Sequential(*layers)


class Inverted(nn.Module):
    def __init__(self, inputs, outputs, factor, stride):
        super().__init__()
        wide = inputs * factor
        self.add = stride == 1 and inputs == outputs
        self.layers = nn.Sequential(
            *([unit(inputs, wide, 1)] if factor > 1 else []),
            unit(wide, wide, 3, stride, wide),
            unit(wide, outputs, 1, act=None),
        )

    def forward(self, x):
        return x + self.layers(x) if self.add else self.layers(x)


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = unit(inputs, outputs, 3, stride, act=nn.ReLU)
        self.second = unit(outputs, outputs, 3, act=None)
        self.shortcut = unit(inputs, outputs, 1, stride, act=None) if stride > 1 or inputs != outputs else None

    def forward(self, x):
        return torch.relu(self.second(self.first(x)) + (self.shortcut(x) if self.shortcut else x))


def head(features, classes):
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(features, classes)]


def mobilenet_v2(channels, classes):
    rows = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    layers, last = [unit(channels, 32, 3, 2)], 32
    for factor, outputs, blocks, stride in rows:
        for i in range(blocks):
            layers.append(Inverted(last, outputs, factor, stride if i == 0 else 1))
            last = outputs
    return nn.Sequential(*layers, unit(last, 1280, 1), *head(1280, classes))


def mobilenet_v1(channels, classes):
    wide = [64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024]
    stride = [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1]
    layers, last = [unit(channels, 32, 3, 2)], 32
    for outputs, by in zip(wide, stride):
        layers += [unit(last, last, 3, by, last), unit(last, outputs, 1)]
        last = outputs
    return nn.Sequential(*layers, *head(last, classes))


def small(channels, classes):
    layers, last = [], channels
    for outputs, stride in ((32, 1), (64, 2), (64, 1), (128, 2)):
        layers.append(unit(last, outputs, 3, stride, act=nn.ReLU))
        last = outputs
    return nn.Sequential(*layers, *head(last, classes))


def resnet20(channels, classes):
    layers, last = [unit(channels, 16, 3, act=nn.ReLU)], 16
    for stage in range(3):
        for i in range(3):
            layers.append(Residual(last, 16 << stage, 2 if stage and i == 0 else 1))
            last = 16 << stage
    return nn.Sequential(*layers, *head(last, classes))


# name, network, side, channels, classes, rows, what; with channels_last only?
SHAPES = [
    ("mobilenet-v2-160", mobilenet_v2, 160, 3, 10, 32, "whole", True),
    ("mobilenet-v1-128", mobilenet_v1, 128, 3, 10, 32, "whole", True),
    ("small-28", small, 28, 1, 10, 128, "whole", False),
    ("small-32", small, 32, 3, 10, 128, "whole", False),
    ("resnet20-32", resnet20, 32, 3, 10, 128, "whole", False),
    ("mobilenet-v2-160-infer", mobilenet_v2, 160, 3, 10, 32, "infer", True),
]


def measure(make, side, channels, classes, rows, what, last, repeat, mode):
    network = make(channels, classes)
    layout = torch.channels_last if last else torch.contiguous_format
    network = network.to(memory_format=layout)
    if mode == "compile":
        torch._dynamo.reset()  # the number of threads becomes part of the code
        network = torch.compile(network)
    x = torch.randn(rows, channels, side, side).to(memory_format=layout)
    labels = torch.arange(rows).remainder(classes)
    network.train(what == "whole")
    optimiser = torch.optim.SGD(network.parameters(), 1e-3, momentum=0.9)
    best = best_cpu = 1e9
    for _ in range(repeat):
        start, start_cpu = time.perf_counter(), time.process_time()
        if what == "infer":
            with torch.inference_mode():
                network(x)
        else:
            optimiser.zero_grad(set_to_none=True)
            with torch.autocast("cpu", torch.bfloat16, enabled=mode == "bf16"):
                loss = nn.functional.cross_entropy(network(x), labels)
            loss.backward()
            optimiser.step()
        best = min(best, time.perf_counter() - start)
        best_cpu = min(best_cpu, time.process_time() - start_cpu)
    return best, best_cpu


def main():
    repeat = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    only = sys.argv[2] if len(sys.argv) > 2 and sys.argv[2] != "all" else None
    mode = sys.argv[3] if len(sys.argv) > 3 else "eager"
    tell_blas()
    print(f"{'shape':28} t {'ms':>9} {'cpu_ms':>9}")
    for name, make, side, channels, classes, rows, what, only_last in SHAPES:
        if only and only != name or mode == "compile" and not hasattr(torch, "compile"):
            continue
        if mode == "bf16" and what != "whole":
            continue
        for threads in (1, 2):
            torch.set_num_threads(threads)
            tried = [
                measure(make, side, channels, classes, rows, what, last, repeat, mode)
                for last in ((True,) if only_last or mode == "compile" else (True, False))
            ]
            best, best_cpu = (min(column) * 1e3 for column in zip(*tried))
            shown = name + "-bf16" if mode == "bf16" else name
            print(f"{shown:28} {threads} {best:9.2f} {best_cpu:9.2f}", flush=True)


if __name__ == "__main__":
    main()
