"""Tensors of safetensors files: a small digest of a file, and the differences from it."""

import hashlib
import json
import math
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# The codes of `struct`, by the type of an element.
CODES = {
    "F64": "d", "F32": "f", "F16": "e", "BF16": "H", "I64": "q", "U64": "Q", "I32": "i", "U32": "I", "I16": "h", "U16": "H",
    "I8": "b", "U8": "B", "BOOL": "?",
}  # fmt: skip
FLOATS = {"F64", "F32", "F16", "BF16"}

# Tensors of up to so many elements are carried whole, of larger ones this share of the elements: a kernel that computes
# wrong does so in whole tiles, rows or channels. Twice the share is twice the bytes that travel.
WHOLE = 4096
SHARE = 0.01

# Largest difference of an element, by the largest of its tensor, or by so much of the largest of all tensors: some gradients
# are nothing but rounding errors.
ALLOWED = 1e-3
FLOOR = 1e-3
# Half of the last place of a short float, more than once.
SHORT = {"F16": 2**-8, "BF16": 2**-5}


@dataclass(frozen=True)
class Tensor:
    """The elements of a tensor that are compared, and a hash of all of them."""

    kind: str
    count: int
    hash: str
    sample: bytes

    def values(self) -> list[float]:
        size = struct.calcsize(f"<{CODES[self.kind]}")
        if self.kind == "BF16":
            wide = b"".join(b"\0\0" + self.sample[at : at + 2] for at in range(0, len(self.sample), 2))
            return list(struct.unpack(f"<{len(wide) // 4}f", wide))
        return list(struct.unpack(f"<{len(self.sample) // size}{CODES[self.kind]}", self.sample))


Digest = dict[str, Tensor]


def sampled(count: int) -> int:
    """How many of so many elements are compared."""
    return count if count <= WHOLE else max(WHOLE, int(count * SHARE))


def place(index: int, count: int) -> int:
    """Where the element of this index among those that are compared is in the tensor."""
    return index * count // sampled(count)


def entries(path: Path) -> Iterator[tuple[str, str, memoryview]]:
    """Name, type and bytes of each tensor of a safetensors file."""
    data = memoryview(path.read_bytes())
    begin = 8 + int.from_bytes(data[:8], "little")
    for name, entry in sorted(json.loads(bytes(data[8:begin])).items()):
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            yield name, entry["dtype"], data[begin + first : begin + last]


def digest(path: Path) -> Digest:
    """The digest of a safetensors file."""
    found = {}
    for name, kind, data in entries(path):
        if kind not in CODES:
            raise ValueError(f"{path.name}: `{name}` has elements of the type {kind}")
        size = struct.calcsize(f"<{CODES[kind]}")
        count = len(data) // size
        chosen = (place(index, count) * size for index in range(sampled(count)))
        sample = bytes(data) if count <= WHOLE else b"".join(data[at : at + size] for at in chosen)
        found[name] = Tensor(kind, count, hashlib.blake2b(data, digest_size=16).hexdigest(), sample)
    return found


def flip_last_bits(path: Path) -> None:
    """Changes every `f32` of a safetensors file by its last bit."""
    whole = bytearray(path.read_bytes())
    begin = 8 + int.from_bytes(whole[:8], "little")
    for entry in json.loads(bytes(whole[8:begin])).values():
        if entry.get("dtype") == "F32":
            first, last = (begin + at for at in entry["data_offsets"])
            bits = array("I", bytes(whole[first:last]))
            whole[first:last] = array("I", (word ^ 1 for word in bits)).tobytes()
    path.write_bytes(whole)


def write(path: Path, tensors: Digest) -> None:
    head = json.dumps({name: [it.kind, it.count, it.hash, len(it.sample)] for name, it in tensors.items()}).encode()
    samples = b"".join(it.sample for it in tensors.values())
    path.write_bytes(len(head).to_bytes(8, "little") + head + samples)


def read(path: Path) -> Digest:
    data = path.read_bytes()
    at = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, (kind, count, hashed, length) in json.loads(data[8:at]).items():
        found[name] = Tensor(kind, count, hashed, data[at : at + length])
        at += length
    if at != len(data):
        raise ValueError(f"{path.name} is cut short")
    return found


@dataclass(frozen=True)
class Difference:
    """An element that differs by more than is allowed."""

    name: str
    element: int
    ours: float
    theirs: float
    # Relative to the largest element; infinite for NaN.
    by: float


def apart(ours: float, theirs: float) -> float:
    if ours == theirs or (math.isnan(ours) and math.isnan(theirs)):
        return 0.0
    by = abs(ours - theirs)
    return math.inf if math.isnan(by) else by


def finite(values: list[float]) -> float:
    """The largest of them that is a number."""
    return max((abs(value) for value in values if math.isfinite(value)), default=0.0)


def compare(ours: Digest, theirs: Digest, allowed: float = ALLOWED) -> tuple[float, list[Difference]]:
    """The largest difference relative to the allowed one, and all differences above it."""
    if ours.keys() != theirs.keys():
        other = sorted(ours.keys() ^ theirs.keys())
        raise ValueError(f"{len(other)} tensors are in one of the two alone: {', '.join(other[:5])}")
    known = {name: it.values() for name, it in theirs.items()}
    largest = {name: finite(known[name]) for name, it in theirs.items() if it.kind in FLOATS}
    least = FLOOR * max(largest.values(), default=0.0)
    worst, found = 0.0, []
    for name, it in theirs.items():
        if (ours[name].kind, ours[name].count) != (it.kind, it.count):
            raise ValueError(f"`{name}` has another type or other extents")
        if ours[name].hash == it.hash:
            continue
        room = allowed * max(SHORT.get(it.kind, 0.0) / ALLOWED, 1.0) * (max(largest.get(name, 0.0), least) or 1.0)
        for index, (our, their) in enumerate(zip(ours[name].values(), known[name], strict=True)):
            by = apart(our, their) / (room if it.kind in FLOATS else 1.0)
            if it.kind not in FLOATS and by > 0:
                by = math.inf
            worst = max(worst, by)
            if by > 1.0:
                found.append(Difference(name, place(index, it.count), our, their, by))
    return worst, found


def changed(ours: Digest, theirs: Digest) -> list[str]:
    """The tensors of which any bit differs."""
    return sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) is None
                  or theirs.get(name) is None or ours[name].hash != theirs[name].hash)  # fmt: skip
