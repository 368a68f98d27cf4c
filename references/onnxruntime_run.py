"""Runs an ONNX model under onnxruntime: what the real models are compared with.

INPUTS is an npz file with one array per input of the model, OUTPUTS the npz file to write, with one
array per output. One thread on the CPU, so that two runs give the same bits.

For a model that is run step by step, `--per-step NAME` names the inputs whose first axis counts the
steps, and `--state INPUT=OUTPUT` the outputs that become inputs of the next step, the array of
INPUTS being the first. The outputs then have the steps as their first axis.

Usage: onnxruntime_run.py MODEL INPUTS OUTPUTS [--per-step NAME]... [--state INPUT=OUTPUT]...
                          [--optimise none|basic|extended|all]
"""

import argparse
import sys

import numpy
import onnxruntime

OPTIMISATION = {
    "none": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}


def open_session(model, optimisation):
    """A session on one thread of the CPU."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # Errors only: of unused initialisers in other people's models nothing is to be done.
    options.log_severity_level = 3
    options.graph_optimization_level = OPTIMISATION[optimisation]
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run(session, inputs):
    """The outputs of one call, by name."""
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def run_steps(session, inputs, per_step, states):
    """The outputs of a call for each step, stacked along a first axis, by name."""
    counts = {len(inputs[name]) for name in per_step}
    if len(counts) != 1:
        sys.exit(f"the inputs of each step have different numbers of steps: {sorted(counts)}")
    current = dict(inputs)
    steps = []
    for step in range(counts.pop()):
        current.update({name: inputs[name][step] for name in per_step})
        outputs = run(session, current)
        current.update({into: outputs[out] for into, out in states.items()})
        steps.append(outputs)
    return {name: numpy.stack([step[name] for step in steps]) for name in steps[0]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("inputs")
    parser.add_argument("outputs")
    parser.add_argument("--per-step", action="append", default=[], metavar="NAME")
    parser.add_argument("--state", action="append", default=[], metavar="INPUT=OUTPUT")
    parser.add_argument("--optimise", choices=OPTIMISATION, default="none")
    arguments = parser.parse_args()
    states = dict(pair.split("=", 1) for pair in arguments.state)
    if states and not arguments.per_step:
        parser.error("--state needs --per-step")

    session = open_session(arguments.model, arguments.optimise)
    with numpy.load(arguments.inputs) as file:
        inputs = dict(file)
    if arguments.per_step:
        outputs = run_steps(session, inputs, arguments.per_step, states)
    else:
        outputs = run(session, inputs)
    numpy.savez(arguments.outputs, **outputs)


if __name__ == "__main__":
    main()
