"""Turns the truth files that the other scripts of this folder leave into recordings that tests read.

A recording is a safetensors file `<graph>.recorded.safetensors` beside its graph: the graph's inputs and its results. Names of its
tensors begin with their role:

- `feed/` inputs and parameters, `result/` outputs, `grad/` a parameter's gradient buffer after a step,
  `state/` running statistics after it;
- `adamw1/`, `adamw3/`, `sgd1/`, `sgd3/` parameters after one and three steps of an optimizer;
- `value/` every other value of one run (only with --values).

    python make/record.py CORPUS OUT [--only feed,result,grad,state] [--values] [MODEL …]
"""

import argparse
import json
import struct
from pathlib import Path

import numpy as np

NAMES = {"float32": "F32", "int64": "I64", "int32": "I32", "bool": "BOOL", "uint8": "U8", "float64": "F64"}


def role_of(tensor: dict) -> str | None:
    """The first part of the tensor's name in a recording; None if it is not recorded."""
    plain = {"input": "feed", "control": "feed", "param": "feed", "frozen": "feed", "loss": "result", "output": "result"}
    match tensor["role"]:
        case "grad":
            return "grad"
        case "param_after":
            return f"{tensor['optimizer']}{tensor['step']}"
        case "intermediate":
            return "value"
        case role:
            return plain.get(role)


def read(json_path: Path) -> dict[str, np.ndarray]:
    """The tensors of a truth file by role and name."""
    described = json.loads(json_path.read_text())
    arrays = np.load(json_path.with_suffix(".npz"))
    found = {}
    frozen = {t["name"] for t in described["tensors"] if t["role"] == "frozen"}
    for tensor in described["tensors"]:
        role, name = role_of(tensor), tensor["name"]
        if role:
            found[f"{role}/{name}"] = np.ascontiguousarray(arrays[tensor["key"]])
        # No optimizer writes frozen parameters: after one step they have the step's own values.
        if role == "adamw1" and name in frozen:
            found[f"state/{name}"] = found[f"{role}/{name}"]
    return found


def write(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """Writes a safetensors file; the same tensors give the same bytes."""
    header, at = {}, 0
    for name in sorted(tensors):
        array = tensors[name]
        span = [at, at + array.nbytes]
        header[name] = {"dtype": NAMES[array.dtype.name], "shape": list(array.shape), "data_offsets": span}
        at = span[1]
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(tensors):
            file.write(tensors[name].tobytes())


def recordings(corpus: Path, model: str) -> list[tuple[str, list[Path]]]:
    """Where recordings of the model go, and the files that they are made from."""
    folder = corpus / model
    found = []
    for variant in sorted(folder.glob("ort*")):
        if (variant / "truth.npz").exists():
            part = {"ort": "", "ort_static": "static/"}.get(variant.name, variant.name.removeprefix("ort_") + "/")
            found.append((f"{model}/{part}training_model", [variant / "truth.json", variant / "trace.json"]))
    for truth in sorted((folder / "std").glob("*.truth.json")):
        found.append((f"{model}/std/{truth.name.removesuffix('.truth.json')}", [truth]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--only", default="")
    parser.add_argument("--values", action="store_true")
    options = parser.parse_args()
    roles = options.only.split(",") if options.only else None
    for folder in sorted(p for p in options.corpus.iterdir() if p.is_dir()):
        if options.models and folder.name not in options.models:
            continue
        for name, sources in recordings(options.corpus, folder.name):
            tensors: dict[str, np.ndarray] = {}
            for source in sources[: 2 if options.values else 1]:
                if source.with_suffix(".npz").exists():
                    tensors |= read(source)
            if roles:
                tensors = {n: t for n, t in tensors.items() if n.split("/")[0] in roles}
            path = options.out / f"{name}.recorded.safetensors"
            write(path, tensors)
            print(f"{path} {path.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
