"""`device="cuda"` over a driver that computes nothing: sessions, steps and state, not their values."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import lmsc
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
CXX = os.environ.get("CXX") or shutil.which("c++")

PROGRAM = """
import sys
import lmsc, lmsc.torch, torch
from torch.nn import functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(512, 10))
adamw = torch.optim.AdamW(net.parameters(), lr=1e-3)
x, y = torch.randn(4, 3, 8, 8), torch.randint(0, 10, (4,))
step = lmsc.torch.TrainStep(net, F.cross_entropy, adamw, example=(x, y), budget="0.8x", device=sys.argv[1], progress=False)
for _ in range(3):
    assert step(x, y).shape == ()
assert "null H100" in step.session.device, step.session.device
state = step.state_dict()
assert state["variables"]["0.weight.exp_avg"].shape == (8, 3, 3, 3) and state["steps"] == 3
step.sync()
step.load()
step.save(sys.argv[2])
step.resume(sys.argv[2])
step(x[:2], y[:2])
assert step.steps == 4
print(step.plan.peak_before > step.plan.peak_after)
"""

TAKEN_OVER = """
import ctypes, os
import lmsc
from lmsc import _dlpack

cuda = ctypes.CDLL(os.path.join(os.environ["LMSC_CUDA_PATH"], "libcuda.so.1"))
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Array:
    def __init__(self, address, *shape):
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.tensor = _dlpack._Tensor(address, 2, 0, len(shape), 2, 32, 1, self.shape, None, 0)

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream):
        assert stream == 1
        return new_capsule(ctypes.addressof(self.tensor), b"dltensor", None)


step = b"step (float[64] x) => (float[] loss) { [sum] float[] loss = ReduceSum<keepdims = 0>(x) }"
session = lmsc.compile(step, target="host").session("cuda")
address = ctypes.c_uint64()
assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(256)) == 0
session.step({"x": Array(address.value, 64)})
for wrong, word in ((Array(16, 64), "not memory of this device"), (Array(address.value, 32), "expected float[64]")):
    try:
        session.step({"x": wrong})
    except lmsc.Error as error:
        assert word in str(error), error
    else:
        raise AssertionError(word)
"""


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the libraries of CUDA, which compute nothing."""
    if CXX is None or sys.platform != "linux":
        pytest.skip("needs a C++ compiler, and Linux")
    folder = tmp_path_factory.mktemp("cuda")
    library = folder / "libcuda.so.1"
    source = ROOT / "runtime/cuda/tests/shim/null.cpp"
    subprocess.run([CXX, "-std=c++17", "-O1", "-fPIC", "-shared", source, "-ldl", "-o", library], check=True)
    for name in ("libcublas.so.13", "libcudnn.so.9", "libnvrtc.so.13"):
        shutil.copy(library, folder / name)
    return folder


@pytest.mark.parametrize("device", ["cuda", "cuda+graph"])
def test_a_step_goes_through_on_cuda(device: str, driver: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    env = os.environ | {
        "LMSC_CUDA_PATH": str(driver), "NULLCUDA_REGISTER": "0", "NULLCUDA_LOG": str(log), "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, device, tmp_path / "checkpoint"], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"
    calls = log.read_text().splitlines()
    assert any(line.startswith("launch ") for line in calls)
    assert ("replay" in calls) == (device == "cuda+graph")


def test_an_array_on_the_same_gpu_is_not_copied_to_the_host(driver: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    env = os.environ | {
        "LMSC_CUDA_PATH": str(driver), "NULLCUDA_REGISTER": "0", "NULLCUDA_LOG": str(log), "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", TAKEN_OVER], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "within 256" in log.read_text().splitlines()


class OnGpu:
    """An array that says that it is on a GPU, which the session is not on, and is copied to the host when that is asked for."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, *, dl_device: tuple[int, int] | None = None, **options: Any) -> Any:
        if dl_device != (1, 0):
            raise BufferError("it is on a GPU")
        return self.array.__dlpack__(**{k: v for k, v in options.items() if k != "copy"})


def test_an_array_on_a_gpu_is_copied_to_the_host() -> None:
    step = b"step (float[2] x) => (float[] loss) { [sum] float[] loss = ReduceSum<keepdims = 0>(x) }"
    session = lmsc.compile(step, target="host").session()
    assert float(session.step({"x": OnGpu(np.array([1, 2], dtype=np.float32))})["loss"]) == 3
