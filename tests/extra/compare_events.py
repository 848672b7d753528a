"""Event files of runs, read by TensorBoard's own code, against metrics.jsonl. Arguments: run directories."""

import json
import logging
import math
import os
import re
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

logging.disable(logging.WARNING)  # it tells of steps that it drops

from tensorboard.backend.event_processing import event_file_loader
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.backend.event_processing import data_provider
from tensorboard.compat.proto import event_pb2
from tensorboard.context import RequestContext
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups
from tensorboard.plugins.hparams import metadata as hparams_metadata

compared = 0


def fail(text):
    print("FAILED:", text)
    sys.exit(1)


def single(value):
    """As a float of 32 bits, which event files have."""
    if value is None:
        return math.nan
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def same(left, right, tolerance=1e-5):
    global compared
    compared += 1
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return abs(left - right) <= tolerance * max(abs(left), abs(right), 1e-30)


def records_of(run):
    """Records of metrics.jsonl by kind; each knows the start it is of."""
    kinds, start = {}, 0
    for line in open(run + "/metrics.jsonl"):
        record = json.loads(line)
        start += record["kind"] == "start"
        record["start"] = start
        kinds.setdefault(record["kind"], []).append(record)
    return kinds


def points(accumulator, tag):
    return accumulator.Scalars(tag) if tag in accumulator.Tags()["scalars"] else []


def load(path):
    accumulator = EventAccumulator(path, size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    return accumulator


def compare_curve(run, chief, tag, records, name):
    """One value for each record, in order, at its step and time."""
    # Asynchronous jobs and the last step may be scored twice at the same step; a value that is none is left out.
    wanted = [r for r in records if r.get(name) is not None or name in ("loss", "logloss")]
    got = points(chief, tag)
    if [e.step for e in got] != [r["step"] for r in wanted]:
        fail(f"{run}: {tag}: steps {[e.step for e in got][:20]}..., not {[r['step'] for r in wanted][:20]}...")
    base = {}
    for event, record in zip(got, wanted):
        if not same(event.value, single(record[name])):
            fail(f"{run}: {tag} at step {event.step}: {event.value}, not {record[name]}")
        offset = event.wall_time - record["t"]  # a constant for each start
        if abs(base.setdefault(record["start"], offset) - offset) > 2e-3:
            fail(f"{run}: {tag} at step {event.step}: the time is off by {offset - base[record['start']]} s")
    return base


def rates(before, now):
    """What the samples of a role tell, from scratch."""
    first = before is None
    zero = dict.fromkeys(now, 0)
    old = zero if first else before

    def delta(name):
        return now[name] - old[name]

    seconds = delta("seconds")
    values = {"system/memory_bytes": now["rss_bytes"]}
    if now["rows"] > 0:
        values["throughput/rows_per_s"] = delta("rows") / seconds
    for name in ("data", "compute", "communicate", "wait"):
        values["time/" + name] = delta(name + "_s") / seconds
    if now["still_s"] > 0:
        values["time/still"] = delta("still_s") / seconds
    if not first:
        values["system/cpu"] = (delta("user_s") + delta("system_s")) / seconds
        values["system/cpu_delay"] = delta("delay_s") / seconds
        values["system/major_faults_per_s"] = delta("major_faults") / seconds
        values["system/disk_read_bytes_per_s"] = delta("read_bytes") / seconds
        values["system/disk_write_bytes_per_s"] = delta("write_bytes") / seconds
        values["system/net_sent_bytes_per_s"] = delta("net_sent_bytes") / seconds
        values["system/net_received_bytes_per_s"] = delta("net_received_bytes") / seconds
    if "requests" in now:
        if now["requests"] > 0:
            values["server/requests_per_s"] = delta("requests") / seconds
        if delta("looks") > 0:
            values["server/queue"] = delta("requests") / delta("looks")
        if delta("pushes") > 0:
            values["server/staleness"] = delta("stale_pushes") / delta("pushes")
    return values


def samples_that_count(samples):
    """Those at least a tenth of a second behind the one before, within a start."""
    last = {}
    for sample in samples:
        before = last.get(sample["start"])
        if sample["seconds"] > 0 and (before is None or sample["seconds"] - before["seconds"] >= 0.1):
            yield before, sample
            last[sample["start"]] = sample


def compare_samples(run, role, accumulator, samples, base):
    """Every value of every sample is there at its time, but for those of steps that were repeated."""
    wanted = {}
    for before, now in samples_that_count(samples):
        for tag, value in rates(before, now).items():
            wanted.setdefault(tag, []).append((now, value))
    shown = {tag for tag in accumulator.Tags()["scalars"] if tag.split("/")[0] in ("system", "time", "throughput", "server")}
    if not shown <= set(wanted):
        fail(f"{run}/{role}: tags {shown - set(wanted)} are of no sample")
    lost = 0
    for tag, values in wanted.items():
        at = {round(e.wall_time, 2): e for e in points(accumulator, tag)}
        found = 0
        for sample, value in values:
            when = base.get(sample["start"])
            event = None
            for near in (0, 0.01, -0.01):
                event = event or (when is not None and at.get(round(when + sample["t"] + near, 2)))
            if not event:
                lost += 1
                continue
            found += 1
            if not same(event.value, single(value), 1e-4):
                fail(f"{run}/{role}: {tag} at {sample['t']}: {event.value}, not {value}")
        if found != len(at):
            fail(f"{run}/{role}: {tag}: {len(at)} values, of which {found} are of samples")
    return lost


def check_records(run):
    """All bytes of all files are records that TensorBoard reads."""
    for folder, _, files in os.walk(run + "/events"):
        for name in files:
            path = os.path.join(folder, name)
            raw = list(event_file_loader.RawEventFileLoader(path).Load())
            if not raw or event_pb2.Event.FromString(raw[0]).file_version != "brain.Event:2":
                fail(f"{path}: begins with no version")
            if sum(16 + len(each) for each in raw) != os.path.getsize(path):
                fail(f"{path}: not all of its bytes were read")


def check_text(run, chief):
    text = chief.Tensors("config.yaml")[-1].tensor_proto.string_val[0].decode()
    lines = [line for line in open(run + "/config.yaml") if not line.startswith("#") and line.strip()]
    if text != "".join("    " + line for line in lines):
        fail(f"{run}: the text is not config.yaml")


def options_of(run):
    """config.yaml, which is flat."""
    options = {}
    for line in open(run + "/config.yaml"):
        name, colon, value = line.strip().partition(": ")
        if colon and not line.startswith("#"):
            options[name] = value.strip("'\"")
    return options


def check_hparams(run, status):
    """As the HParams tab asks for it."""
    multiplexer = EventMultiplexer()
    multiplexer.AddRunsFromDirectory(run + "/events")
    multiplexer.Reload()
    provider = data_provider.MultiplexerDataProvider(multiplexer, run)
    context = backend_context.Context(base_plugin.TBContext(data_provider=provider))
    ctx = RequestContext()
    content = context.hparams_metadata(ctx, "")
    experiment = context.experiment_from_metadata(
        ctx, "", True, content, context.hparams_from_data_provider(ctx, "", limit=0)
    )
    names = {info.name for info in experiment.hparam_infos}
    metrics = {info.name.tag for info in experiment.metric_infos}
    if not {"lr", "batch", "workers", "optimizer", "seed", "model", "mode"} <= names or "run" in names:
        fail(f"{run}: hparams are {sorted(names)}")
    if not {"test/logloss", "test/auc", "train/loss"} <= metrics:
        fail(f"{run}: metrics are {sorted(metrics)}")
    request = api_pb2.ListSessionGroupsRequest(
        start_index=0,
        slice_size=10,
        allowed_statuses=[api_pb2.STATUS_UNKNOWN, api_pb2.STATUS_SUCCESS, api_pb2.STATUS_FAILURE, api_pb2.STATUS_RUNNING],
        aggregation_type=api_pb2.AGGREGATION_AVG,
        col_params=[{"metric": {"group": "", "tag": tag}} for tag in sorted(metrics)],
        include_metrics=True,
    )
    groups = list_session_groups.Handler(ctx, context, "", request).run().session_groups
    if len(groups) != 1 or len(groups[0].sessions) != 1:
        fail(f"{run}: {len(groups)} groups of sessions")
    session = groups[0].sessions[0]
    if session.status != status:
        fail(f"{run}: status {session.status}, not {status}")
    first = content["chief"][hparams_metadata.SESSION_START_INFO_TAG]
    start = hparams_metadata.parse_session_start_info_plugin_data(first)
    config = options_of(run)
    for name, value in start.hparams.items():
        kind = value.WhichOneof("kind")
        wanted = config.get(name, "null")
        if name == "ps" and run == "stopped":
            continue  # readers go by the first start's word
        if kind == "number_value" and not same(value.number_value, float(wanted), 1e-12):
            fail(f"{run}: {name} is {value.number_value}, not {wanted}")
        if kind == "bool_value" and str(value.bool_value).lower() != wanted:
            fail(f"{run}: {name} is {value.bool_value}, not {wanted}")
        if kind == "string_value" and value.string_value != ("" if wanted in ("null", "~") else wanted):
            fail(f"{run}: {name} is {value.string_value!r}, not {wanted!r}")
    return {m.name.tag: m.value for m in groups[0].metric_values}


def check_summary(run, metrics):
    test = json.load(open(run + "/summary.json"))["test"]
    for name in ("logloss", "auc", "accuracy", "f1"):
        if not same(metrics["test/" + name], single(test[name])):
            fail(f"{run}: HParams shows {name} {metrics['test/' + name]}, not {test[name]}")


def check_run(run):
    records = records_of(run)
    folders = sorted(os.listdir(run + "/events"))
    check_records(run)
    chief = load(run + "/events/chief")
    base = {}
    for name in ("loss", "lr", "rows_per_s", "epoch"):
        base.update(compare_curve(run, chief, "train/" + name, records["step"], name))
    for name in ("logloss", "auc", "accuracy", "f1", "mean_predicted", "mean_actual"):
        compare_curve(run, chief, "test/" + name, records.get("eval", []), name)
    samples = records.get("sample", [])
    roles = sorted({sample["role"] for sample in samples})
    if not set(roles) <= set(folders):
        fail(f"{run}: roles {roles}, but directories {folders}")
    lost = 0
    for role in roles:
        lost += compare_samples(run, role, load(f"{run}/events/{role}"), [s for s in samples if s["role"] == role], base)
    starts = len(records["start"])
    if lost and starts == 1:
        fail(f"{run}: {lost} values of samples are not there")
    check_text(run, chief)
    finished = os.path.exists(run + "/summary.json")
    metrics = check_hparams(run, api_pb2.STATUS_SUCCESS if finished else api_pb2.STATUS_FAILURE)
    if finished:
        check_summary(run, metrics)
    print(f"{run}: {starts} starts, {len(folders)} roles, {len(records['step'])} steps, {len(samples)} samples; "
          f"{lost} values of repeated steps dropped")


def check_server(run):
    """The program itself, whose loader is another one: steps of a run that was started twice."""
    command = [os.path.join(os.path.dirname(sys.executable), "tensorboard")]
    command += ["--logdir", run + "/events", "--host", "127.0.0.1", "--port", "0", "--load_fast", "true"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        place = None
        while not place:  # it says where it is, or ends
            line = server.stderr.readline()
            place = re.search(r"http://127.0.0.1:\d+/", line)
            if not line:
                fail("tensorboard has ended")
        query = urllib.parse.urlencode({"run": "chief", "tag": "train/loss"})
        url = f"{place.group()}data/plugin/scalars/scalars?{query}"
        wanted = [record["step"] for record in records_of(run)["step"]]
        deadline, steps = time.monotonic() + 60, None
        while steps != wanted:  # it reads in the background
            if time.monotonic() > deadline:
                fail(f"{run}: the server shows steps {steps}, not {wanted}")
            time.sleep(0.2)
            try:
                steps = [point[1] for point in json.load(urllib.request.urlopen(url, timeout=10))]
            except urllib.error.HTTPError:
                continue  # nothing was read yet
    finally:
        server.terminate()
        server.wait()
    print(f"{run}: the server shows its {len(steps)} steps")


for path in sys.argv[1:]:
    check_run(path)
check_server("killed")
print(f"tensorboard: {compared} values are those of metrics.jsonl, summary.json and config.yaml")
