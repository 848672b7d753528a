"""Writes the rows of a prepared data set as svmlight text, with the features that paceline trains on.

export_svmlight.py DIR train|test > FILE

Needs h5py and numpy. Feature numbers are the compact ids + 1, each with the value 1; features that do not occur in the
training rows are left out. Only for sets whose rows have the same columns and no values.
"""
import glob
import sys

import h5py
import numpy


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in ("train", "test"):
        sys.exit(__doc__)
    parts = sorted(glob.glob(sys.argv[1] + "/part-*.h5"))
    if not parts:
        sys.exit(sys.argv[1] + ": no part-*.h5; make it with 'paceline prep'")
    for path in parts:
        with h5py.File(path) as part:
            group = part[sys.argv[2]]
            if "ids" not in group or "values" in group:
                sys.exit(path + ": rows differ in length or have values; this script does not write those")
            write(group["ids"][:], group["label"][:], int(part.attrs["ids_seen"]))


def write(ids, labels, ids_seen):
    ids = numpy.sort(ids, axis=1)
    lines = []
    for row, label in zip(ids.tolist(), labels.tolist()):
        features = [f"{i + 1}:1" for i in row if i < ids_seen]
        lines.append(f"{label} " + " ".join(features) + "\n")
    sys.stdout.writelines(lines)


main()
