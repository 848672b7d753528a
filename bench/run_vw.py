"""Runs Vowpal Wabbit with its command-line arguments and prints what it took as JSON.

run_vw.py [--onethread] VW-ARGUMENTS...

"seconds" goes from VW's start to its end (weights allocated, rows learned, model saved if -f is given), without
Python's start; "begin" and "end" are these moments on a clock that all processes of the machine share. Without
--onethread: PyPI's vowpalwabbit, which always parses in a thread of its own. With it: PyPI's vowpal-wabbit-next, whose
driver can do without.
"""
import json
import re
import sys
import time


def one_thread(arguments):
    import vowpal_wabbit_next

    begin = time.perf_counter()
    output, _ = vowpal_wabbit_next.run_cli_driver(arguments, onethread=True)
    end = time.perf_counter()
    loss = re.search(r"average loss = ([0-9][-+.0-9e]*)", output)
    return begin, end, float(loss.group(1)) if loss else None, vowpal_wabbit_next.VW_VERSION


def parse_thread(arguments):
    import vowpalwabbit

    begin = time.perf_counter()
    vw = vowpalwabbit.Workspace(arg_list=arguments)
    rows = vw.get_weighted_examples()
    loss = vw.get_sum_loss() / rows if rows else None
    vw.finish()
    return begin, time.perf_counter(), loss, vowpalwabbit.__version__


def main():
    arguments = sys.argv[1:]
    if not arguments:
        sys.exit(__doc__)
    run = parse_thread
    if "--onethread" in arguments:
        arguments.remove("--onethread")
        run = one_thread
    begin, end, loss, version = run(arguments)
    if loss is not None and loss != loss:
        loss = None
    print(json.dumps({"seconds": end - begin, "begin": begin, "end": end, "average_loss": loss, "version": version}))


main()
