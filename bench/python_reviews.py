"""What `paceline prep reviews` does, as a straightforward script: the yardstick of bench/reviews.sh.

python_reviews.py REVIEWS.jsonl STOPWORDS OUTPUT-DIRECTORY

Two passes over JSON-lines: count the words, then turn each text into 100 numbers; shuffle; write 8 files of rows, and
the vocabulary. Only the standard library. Prints seconds and sizes as JSON. STOPWORDS: one word a line.
"""
import array
import collections
import html
import json
import os
import random
import re
import sys
import time

VOCABULARY = 10000
LENGTH = 100
PARTS = 8
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
TAG = re.compile(r"<[a-zA-Z/!][^<>]*>")


def words_of(text):
    text = html.unescape(TAG.sub(" ", text)).replace("\u2019", "'")
    return WORD.findall(text.lower())


def reviews_of(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            review = json.loads(line)
            yield review["reviewText"], review["overall"]


def main():
    path, stop_path, output = sys.argv[1:]
    begin = time.perf_counter()
    with open(stop_path, encoding="utf-8") as lines:
        stops = {line.strip() for line in lines}
    counts = collections.Counter()
    for text, _ in reviews_of(path):
        counts.update(word for word in words_of(text) if word not in stops)
    counted = time.perf_counter()
    frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:VOCABULARY]
    ids = {word: number + 3 for number, (word, _) in enumerate(frequent)}
    rows = []
    for text, rating in reviews_of(path):
        row = [ids.get(word, 1) for word in words_of(text) if word not in stops][:LENGTH] or [2]
        length = len(row)
        row.extend([0] * (LENGTH - length))
        rows.append((rating >= 4, length, array.array("I", row)))
    random.Random(1).shuffle(rows)
    encoded = time.perf_counter()
    os.makedirs(output, exist_ok=True)
    for part in range(PARTS):
        mine = rows[len(rows) * part // PARTS:len(rows) * (part + 1) // PARTS]
        with open(os.path.join(output, f"part-{part}"), "wb") as out:
            array.array("B", [label for label, _, _ in mine]).tofile(out)
            array.array("I", [length for _, length, _ in mine]).tofile(out)
            for _, _, row in mine:
                row.tofile(out)
    with open(os.path.join(output, "vocabulary.txt"), "w", encoding="utf-8") as out:
        for word, count in frequent:
            out.write(f"{word}\t{count}\n")
    end = time.perf_counter()
    print(json.dumps({"rows": len(rows), "bytes": os.path.getsize(path), "distinct_words": len(counts),
                      "seconds": end - begin, "count_seconds": counted - begin,
                      "encode_seconds": encoded - counted, "write_seconds": end - encoded}))


main()
