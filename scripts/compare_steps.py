"""Times training steps on lmsc's host kernels beside onnxruntime-training's, in turns, and prints the ratio.

    cargo bench --bench steps --no-run
    python scripts/compare_steps.py PATH_OF_THE_BENCHMARK [--rounds N] [CASE …]

A case is a folder of testdata/models with its dimensions, such as resnet50:batch=8. Both take one step of the training
graph and of AdamW at a time, on as many threads as there are processors; the least time of all rounds counts, so that
other programs on the machine disturb little. Runs in the environment of scripts/check-ort.
"""

import argparse
import os
import subprocess
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

MODELS = Path(__file__).resolve().parent.parent / "testdata" / "models"
CASES = ["resnet50:batch=8", "gpt2_small:batch=2,seq=64", "resnet18:batch=8", "charlstm:batch=8,batch_seq=512", "tiny_bert:batch=4"]
TYPES = {1: np.float32, 7: np.int64, 9: np.bool_}


def random_array(name: str, info: onnx.ValueInfoProto, dims: dict[str, int], random: np.random.Generator) -> np.ndarray:
    """Small numbers, labels and indices of 0, gradients that are overwritten."""
    tensor = info.type.tensor_type
    shape = [dims.get(d.dim_param, d.dim_value) for d in tensor.shape.dim]
    match TYPES[tensor.elem_type]:
        case np.float32 if name.endswith("running_var"):
            return np.ones(shape, np.float32)
        case np.float32:
            return (random.random(shape, np.float32) - 0.5) * np.float32(0.1)
        case np.bool_:
            return np.ones(shape, np.bool_)
        case other:
            return np.zeros(shape, other)


class Reference:
    """One step in onnxruntime-training."""

    def __init__(self, folder: Path, dims: dict[str, int]) -> None:
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = os.cpu_count() or 1
        for name, value in dims.items():
            options.add_free_dimension_override_by_name(name, value)
        model = onnx.load(folder / "training_model.onnx")
        random = np.random.default_rng(1)
        self.feed = {i.name: random_array(i.name, i, dims, random) for i in model.graph.input}
        providers = ["CPUExecutionProvider"]
        self.step = ort.InferenceSession(str(folder / "training_model.onnx"), options, providers)
        self.update = ort.InferenceSession(str(folder / "optimizer_model.onnx"), options, providers)
        suffix = "_grad.accumulation.buffer"
        gradients = [n for n in self.feed if n.endswith(suffix)]
        parameters = [self.feed[n.removesuffix(suffix)] for n in gradients]
        self.state = {
            "learning_rate": np.array([1e-3], np.float32),
            "step": np.array([1], np.int64),
            "params": parameters,
            "gradients": [self.feed[n] for n in gradients],
            "first_order_moments": [np.zeros_like(p) for p in parameters],
            "second_order_moments": [np.zeros_like(p) for p in parameters],
        }

    def seconds(self, steps: int) -> float:
        least = float("inf")
        for _ in range(steps + 1):
            start = time.perf_counter()
            self.step.run(None, self.feed)
            self.update.run(None, self.state)
            least = min(least, time.perf_counter() - start)
        return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark")
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2)
    options = parser.parse_args()
    for case in options.cases:
        name, _, bindings = case.partition(":")
        dims = {k: int(v) for k, v in (b.split("=") for b in bindings.split(",") if b)}
        folder = MODELS / name
        command = [options.benchmark, str(folder / "training_model.onnx"), "--steps", str(options.steps)]
        command += ["--optimizer", str(folder / "optimizer_model.onnx")]
        command += [a for k, v in dims.items() for a in ("--dim", f"{k}={v}")]
        reference = Reference(folder, dims)
        ours, theirs = [], []
        for _ in range(options.rounds):
            theirs.append(reference.seconds(options.steps))
            out = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            ours.append(float(out.stdout))
        print(f"{case}: lmsc {min(ours):.4f} s, onnxruntime {min(theirs):.4f} s, ratio {min(ours) / min(theirs):.2f}")


if __name__ == "__main__":
    main()
