#!/usr/bin/env python3
"""mobilenet_numpy.py FILE PROGRAM [PICTURE ...]: MobileNet v1 0.25 a second time, with nothing but numpy.

FILE is a safetensors file with Keras' names, PROGRAM is bench_mobilenet. PICTUREs are files that Pillow
reads, cut to a square in their middle and scaled to 224 x 224; without any, four are drawn: noise, ramps,
stripes and discs. Prints the five best classes of each picture and the largest difference between the
logits of numpy, in double precision, and those of PROGRAM's plain and fast networks. Ends with 1 if one is
above 1e-4 of the largest logit.
"""
import json
import struct
import subprocess
import sys
import tempfile

import numpy as np

SIDE = 224
STRIDES = [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1]


def read_safetensors(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "F32", name
        tensors[name] = np.frombuffer(data[begin:end], dtype="<f4").reshape(entry["shape"]).astype(np.float64)
    return tensors


def pad_same(x, kernel, stride):
    """x is (height, width, channels); what does not divide goes behind and below."""
    pads = []
    for size in x.shape[:2]:
        outside = max((-(-size // stride) - 1) * stride + kernel - size, 0)
        pads.append((outside // 2, outside - outside // 2))
    return np.pad(x, pads + [(0, 0)])


def layer(tensors, name, x, stride, depthwise):
    weight = tensors[name + ("/depthwise_kernel" if depthwise else "/kernel")]
    kernel = weight.shape[0]
    height, width = -(-x.shape[0] // stride), -(-x.shape[1] // stride)
    x = pad_same(x, kernel, stride)
    z = 0
    for i in range(kernel):
        for j in range(kernel):
            window = x[i : i + height * stride : stride, j : j + width * stride : stride][:height, :width]
            z = z + (window * weight[i, j, :, 0] if depthwise else window @ weight[i, j])
    gamma, beta, mean, variance = (
        tensors["%s_bn/%s" % (name, key)] for key in ("gamma", "beta", "moving_mean", "moving_variance"))
    y = (z - mean) / np.sqrt(variance + 0.001) * gamma + beta
    return np.clip(y, 0, 6)


def logits_of(tensors, picture):
    x = layer(tensors, "conv1", picture / 127.5 - 1, 2, False)
    for number, stride in enumerate(STRIDES, 1):
        x = layer(tensors, "conv_dw_%d" % number, x, stride, True)
        x = layer(tensors, "conv_pw_%d" % number, x, 1, False)
    return x.mean(axis=(0, 1)) @ tensors["conv_preds/kernel"][0, 0] + tensors["conv_preds/bias"]


def drawn():
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    noise = np.random.default_rng(1).integers(0, 256, (SIDE, SIDE, 3))
    ramps = np.stack([x, y, 255 - x], axis=2)
    stripes = np.where((x + y)[:, :, None] // 16 % 2 == 0, [250, 190, 20], [20, 20, 30])
    distance = np.hypot(x - 112, y - 112)[:, :, None]
    discs = np.where(distance < 40, [30, 30, 30], np.where(distance < 90, [220, 40, 40], [120, 180, 240]))
    return {"noise": noise, "ramps": ramps, "stripes": stripes, "discs": discs}


def opened(paths):
    from PIL import Image

    pictures = {}
    for path in paths:
        image = Image.open(path).convert("RGB")
        side = min(image.size)
        left, top = (image.size[0] - side) // 2, (image.size[1] - side) // 2
        image = image.crop((left, top, left + side, top + side)).resize((SIDE, SIDE), Image.BILINEAR)
        pictures[path] = np.asarray(image)
    return pictures


def run(program, file, pictures):
    with tempfile.NamedTemporaryFile() as raw:
        raw.write(b"".join(np.ascontiguousarray(p, dtype=np.uint8).tobytes() for p in pictures))
        raw.flush()
        command = [program, file, str(SIDE), raw.name]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = {}
    for line in out.stdout.splitlines():
        engine, row, *values = line.split()
        found[engine, int(row)] = np.array(values, dtype=np.float64)
    return found


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    file, program, paths = sys.argv[1], sys.argv[2], sys.argv[3:]
    tensors = read_safetensors(file)
    pictures = opened(paths) if paths else drawn()
    found = run(program, file, list(pictures.values()))
    bad = False
    for row, (name, picture) in enumerate(pictures.items()):
        expected = logits_of(tensors, picture.astype(np.float64))
        largest = np.abs(expected).max()
        print("%s: best classes %s" % (name, " ".join(map(str, np.argsort(-expected)[:5]))))
        for engine in ("plain", "fast"):
            difference = np.abs(found[engine, row] - expected).max()
            same = np.argsort(-found[engine, row])[:5].tolist() == np.argsort(-expected)[:5].tolist()
            print("  %s: best classes %s, logits differ by at most %.3g of %.3g" %
                  (engine, "the same" if same else "OTHERS", difference, largest))
            bad |= not same or not difference <= 1e-4 * largest
    sys.exit(1 if bad else 0)


main()
