"""Times onnxruntime and RLX on the same models, turn by turn.

Both have the same number of threads. Each round asks one side for a few runs, then the other, and gives one
ratio; the median of the ratios counts, since what else the machine does meanwhile falls on both sides of a
round. Between turns both rest, so that no thread of one spins while the other runs.

WORKER is `rlx-judge`; LIST is what `cargo xtask references --json` prints. The last line of output is

    {"geomean", "min", "models": [{"name", "ratio", "rlx_ms", "ort_ms"}]}

with ratio = ort_ms / rlx_ms by rounds, and each side's median time.

Usage: bench_onnxruntime.py --worker WORKER --references LIST [--filter TEXT] [--rounds N] [--threads N]
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import time

import numpy
import onnxruntime

# The time that one side's turn should take, and the rest after it.
TURN_SECONDS = 0.2
REST_SECONDS = 0.02


def open_session(model, threads):
    """As a user gets it, but with this many threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def first_call(case):
    """The inputs of the first call."""
    with numpy.load(case["inputs"]) as file:
        return {name: file[name][0] if name in case["per_step"] else file[name] for name in file}


class Worker:
    """RLX, in a process of its own."""

    def __init__(self, program, references, case, threads):
        command = [program, "bench-worker", "--references", references, "--case", case]
        self.process = subprocess.Popen(
            [*command, "--threads", str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def time(self, runs):
        """The mean time of a run, in milliseconds."""
        self.process.stdin.write(f"{runs}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the worker ended early")
        return float(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def time_session(session, inputs, runs):
    """The mean time of a run, in milliseconds."""
    session.run(None, inputs)
    start = time.perf_counter()
    for _ in range(runs):
        session.run(None, inputs)
    return (time.perf_counter() - start) * 1e3 / runs


def bench(case, arguments):
    """One row of the result."""
    session = open_session(case["model"], arguments.threads)
    inputs = first_call(case)
    worker = Worker(arguments.worker, arguments.references, case["name"], arguments.threads)
    runs = {}
    for side, ask in [("ort", lambda n: time_session(session, inputs, n)), ("rlx", worker.time)]:
        ask(1)
        runs[side] = max(1, min(1000, round(TURN_SECONDS * 1e3 / max(ask(1), 1e-3))))
    times = {"ort": [], "rlx": []}
    for _ in range(arguments.rounds):
        times["ort"].append(time_session(session, inputs, runs["ort"]))
        time.sleep(REST_SECONDS)
        times["rlx"].append(worker.time(runs["rlx"]))
        time.sleep(REST_SECONDS)
    worker.close()
    return {
        "name": case["name"],
        "ratio": statistics.median(ort / rlx for ort, rlx in zip(times["ort"], times["rlx"])),
        "rlx_ms": statistics.median(times["rlx"]),
        "ort_ms": statistics.median(times["ort"]),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker", required=True)
    parser.add_argument("--references", required=True)
    parser.add_argument("--filter", default="")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    with open(arguments.references) as file:
        cases = json.load(file)["cases"]
    rows = []
    for case in cases:
        if arguments.filter not in case["name"]:
            continue
        row = bench(case, arguments)
        print(
            f"{row['ratio']:8.3f}  rlx {row['rlx_ms']:10.3f} ms  onnxruntime {row['ort_ms']:10.3f} ms  {row['name']}",
            file=sys.stderr,
        )
        rows.append(row)
    if not rows:
        sys.exit(f"no case is called {arguments.filter!r}")
    ratios = [row["ratio"] for row in rows]
    geomean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(json.dumps({"geomean": geomean, "min": min(ratios), "models": rows}))


if __name__ == "__main__":
    main()
