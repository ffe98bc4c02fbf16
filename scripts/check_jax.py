"""Exports training steps of JAX with jax.export, runs them with lmsc, and compares losses and all state after three steps with JAX.

Every step of CASES is planned for 80 % of its peak, too, where a plan is that small: it gives the same bits. Prints one line a step.
LMSC names the program; arguments select steps by parts of their names. `--keep FOLDER` writes each module with its first values and
the right ones there. Needs the packages of requirements-jax.txt.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import export, lax
from safetensors.numpy import load_file, save_file

LMSC = os.environ.get("LMSC", "lmsc")
STEPS = 3
TOLERANCE = 1e-5
# A bfloat16 has 8 bits: two sums in other orders differ in the last one, and XLA keeps more bits between operators.
SHORT_TOLERANCE = 2e-2
# Adam divides the gradient by its size: where it is nearly 0, its last bits decide. So this share of elements may differ more.
SHARE = 2e-3
# The five of which the project says that they are equal.
FIRST = ("mlp", "cnn", "gpt", "gpt-scan", "gpt-bf16")

Tree = Any
Loss = Callable[..., Any]
# A step: its first parameters, its loss, its optimizer and its data.
CASES: dict[str, Callable[[], tuple[Tree, Loss, optax.GradientTransformation, tuple[Any, ...]]]] = {}


def case(name: str) -> Callable[[Any], Any]:
    def keep(make: Any) -> Any:
        CASES[name] = make
        return make

    return keep


def normal(seed: int, *shape: int, scale: float = 0.3, dtype: Any = jnp.float32) -> Any:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape) * scale, dtype)


def integers(seed: int, below: int, *shape: int) -> Any:
    return jnp.asarray(np.random.default_rng(seed).integers(0, below, size=shape), jnp.int32)


def adamw() -> optax.GradientTransformation:
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 2, 10)
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))


def cross_entropy(logits: Any, labels: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


@case("mlp")
def mlp() -> Any:
    p = {"w1": normal(1, 16, 32), "b1": jnp.zeros(32), "w2": normal(2, 32, 4), "b2": jnp.zeros(4)}

    def loss(p: Tree, x: Any, y: Any) -> Any:
        return cross_entropy(jax.nn.relu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"], y)

    return p, loss, adamw(), (normal(3, 8, 16), integers(4, 4, 8))


def conv(x: Any, k: Any, stride: int = 1, padding: str = "SAME", **more: Any) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, k, (stride, stride), padding, dimension_numbers=numbers, **more)


@case("cnn")
def cnn() -> Any:
    p = {"k1": normal(1, 3, 3, 3, 8), "k2": normal(2, 3, 3, 8, 16), "w": normal(3, 16, 10)}

    def loss(p: Tree, x: Any, y: Any) -> Any:
        h = jax.nn.gelu(conv(x, p["k1"], 2))
        h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return cross_entropy(jax.nn.gelu(conv(h, p["k2"], 2)).mean((1, 2)) @ p["w"], y)

    return p, loss, optax.sgd(0.1, momentum=0.9), (normal(4, 4, 32, 32, 3), integers(5, 10, 4))


@case("cnn-forms")
def cnn_forms() -> Any:
    """Convolutions with groups, dilations, and paddings of one side; transposed ones; average pooling."""
    p = {
        "depthwise": normal(1, 3, 3, 1, 8),
        "grouped": normal(2, 3, 3, 4, 12),
        "dilated": normal(3, 3, 3, 12, 6),
        "up": normal(4, 3, 3, 6, 4),
        "w": normal(5, 4, 3),
    }

    def loss(p: Tree, x: Any, y: Any) -> Any:
        h = jnp.tanh(conv(x, p["depthwise"], 1, feature_group_count=8))
        h = jnp.tanh(conv(h, p["grouped"], 2, feature_group_count=2))
        h = jnp.tanh(conv(h, p["dilated"], 1, [(2, 1), (0, 3)], rhs_dilation=(2, 2)))
        h = lax.reduce_window(h, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "SAME") / 4
        h = jnp.tanh(lax.conv_transpose(h, p["up"], (2, 2), "SAME"))
        return cross_entropy(h.mean((1, 2)) @ p["w"], y)

    return p, loss, optax.adam(1e-2), (normal(6, 4, 12, 12, 8), integers(7, 3, 4))


def norm(x: Any, scale: Any, bias: Any) -> Any:
    x = x.astype(jnp.float32)
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return ((x - mean) * lax.rsqrt(var + 1e-5)) * scale + bias


def block(p: Tree, x: Any, heads: int) -> Any:
    batch, length, width = x.shape
    h = norm(x, p["s1"], p["o1"]).astype(x.dtype)
    q, k, v = jnp.split(h @ p["qkv"], 3, -1)
    q, k, v = (t.reshape(batch, length, heads, width // heads) for t in (q, k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // heads).astype(np.float32).astype(x.dtype)
    mask = jnp.tril(jnp.ones((length, length), bool))
    scores = jax.nn.softmax(jnp.where(mask, scores.astype(jnp.float32), -1e9), -1).astype(x.dtype)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(batch, length, width) @ p["out"]
    return x + jax.nn.gelu(norm(x, p["s2"], p["o2"]).astype(x.dtype) @ p["up"]) @ p["down"]


def layer(seed: int, width: int, dtype: Any) -> Tree:
    n = lambda i, *shape: normal(seed + i, *shape, scale=0.1, dtype=dtype)  # noqa: E731
    ones, zeros = jnp.ones(width), jnp.zeros(width)
    return {
        "qkv": n(0, width, 3 * width),
        "out": n(1, width, width),
        "up": n(2, width, 4 * width),
        "down": n(3, 4 * width, width),
        "s1": ones,
        "o1": zeros,
        "s2": ones,
        "o2": zeros,
    }


def gpt(layers: int, scan: bool, dtype: Any, remat: bool = False) -> Any:
    width, vocabulary, length, heads = 16, 31, 12, 2
    blocks = [layer(10 * i, width, dtype) for i in range(layers)]
    p = {
        "wte": normal(900, vocabulary, width, scale=0.1, dtype=dtype),
        "wpe": normal(901, length, width, scale=0.1, dtype=dtype),
        "h": jax.tree.map(lambda *a: jnp.stack(a), *blocks) if scan else blocks,
    }

    def loss(p: Tree, tokens: Any, labels: Any) -> Any:
        x = p["wte"][tokens] + p["wpe"]
        one = jax.checkpoint(block, static_argnums=2) if remat else block
        if scan:
            x, _ = lax.scan(lambda x, q: (one(q, x, heads), None), x, p["h"])
        else:
            for q in p["h"]:
                x = one(q, x, heads)
        logits = (x @ p["wte"].T).astype(jnp.float32)
        return cross_entropy(logits, labels)

    data = (integers(902, vocabulary, 3, length), integers(903, vocabulary, 3, length))
    return p, loss, adamw(), data


CASES["gpt"] = lambda: gpt(2, False, jnp.float32)
CASES["gpt-scan"] = lambda: gpt(3, True, jnp.float32)
CASES["gpt-bf16"] = lambda: gpt(2, False, jnp.bfloat16)
CASES["gpt-scan-remat"] = lambda: gpt(3, True, jnp.float32, remat=True)


@case("llama")
def llama() -> Any:
    """RMS norm, rotary embedding, groups of heads, a gated unit, and an untied head."""
    width, heads, groups, length, vocabulary = 16, 4, 2, 8, 23
    size = width // heads
    n = lambda i, *shape: normal(i, *shape, scale=0.1)  # noqa: E731
    p = {
        "e": n(1, vocabulary, width),
        "q": n(2, width, width),
        "k": n(3, width, groups * size),
        "v": n(4, width, groups * size),
        "o": n(5, width, width),
        "gate": n(6, width, 24),
        "up": n(7, width, 24),
        "down": n(8, 24, width),
        "head": n(9, width, vocabulary),
        "s": jnp.ones(width),
    }

    def rms(x: Any, s: Any) -> Any:
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * s

    def rotated(x: Any) -> Any:
        angles = jnp.arange(length)[:, None] / 10000.0 ** (jnp.arange(0, size, 2) / size)
        cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
        a, b = x[..., ::2], x[..., 1::2]
        return jnp.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)

    def loss(p: Tree, tokens: Any, labels: Any) -> Any:
        x = jnp.take(p["e"], tokens, axis=0)
        h = rms(x, p["s"])
        q = rotated((h @ p["q"]).reshape(*x.shape[:2], heads, size))
        k = rotated((h @ p["k"]).reshape(*x.shape[:2], groups, size))
        v = (h @ p["v"]).reshape(*x.shape[:2], groups, size)
        o = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + o.reshape(x.shape) @ p["o"]
        h = rms(x, p["s"])
        x = x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]
        return cross_entropy(x @ p["head"], labels)

    return p, loss, optax.lion(1e-3), (integers(10, vocabulary, 2, length), integers(11, vocabulary, 2, length))


@case("dropout")
def dropout() -> Any:
    """Random numbers: threefry is integer arithmetic, and its key is an argument."""
    p = {"w": normal(1, 6, 40), "v": normal(2, 40, 3)}

    def loss(p: Tree, x: Any, y: Any, key: Any) -> Any:
        h = jax.nn.silu(x @ p["w"])
        key, other = jax.random.split(jax.random.wrap_key_data(key))
        keep = jax.random.bernoulli(key, 0.7, h.shape)
        noise = jax.random.normal(other, h.shape) * 0.01
        return cross_entropy((jnp.where(keep, h / 0.7, 0) + noise) @ p["v"], y)

    key = jax.random.key_data(jax.random.key(5))
    return p, loss, optax.rmsprop(1e-2), (normal(3, 9, 6), integers(4, 3, 9), key)


@case("lstm")
def lstm() -> Any:
    width = 5
    p = {"w": normal(1, 4 + width, 4 * width), "b": jnp.zeros(4 * width), "v": normal(2, width, 2)}

    def loss(p: Tree, x: Any, y: Any) -> Any:
        def cell(carry: Any, x: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ p["w"] + p["b"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((x.shape[0], width))
        (_, _), hs = lax.scan(cell, (zeros, zeros), x.swapaxes(0, 1))
        _, reverse = lax.scan(cell, (zeros, zeros), x.swapaxes(0, 1), reverse=True)
        return cross_entropy((hs + reverse).mean(0) @ p["v"], y)

    return p, loss, optax.adagrad(0.1), (normal(3, 3, 7, 4), integers(4, 2, 3))


@case("moe")
def moe() -> Any:
    """Routing by top-k, sorting, running sums and a scatter."""
    p = {"r": normal(1, 6, 4), "e": normal(2, 4, 6, 6), "v": normal(3, 6, 3)}

    def loss(p: Tree, x: Any, y: Any) -> Any:
        gates = jax.nn.softmax(x @ p["r"])
        best, which = lax.top_k(gates, 2)
        out = jnp.einsum("nd,nkde->nke", x, p["e"][which])
        h = (best[..., None] * jnp.tanh(out)).sum(1)
        place = jnp.cumsum(jax.nn.one_hot(which[:, 0], 4), 0)
        load = jnp.zeros(4).at[which[:, 0]].add(1.0)
        order = jnp.argsort(gates[:, 0])
        accuracy = (jnp.argmax(h @ p["v"], -1) == y).mean()
        aux = (jnp.sort(gates, 0) * place).sum() * 1e-3 + (load * gates.mean(0)).sum() * 1e-2
        return cross_entropy(h[order] @ p["v"], y[order]) + aux + 0 * accuracy

    return p, loss, optax.adafactor(1e-2, min_dim_size_to_factor=2), (normal(4, 8, 6), integers(5, 3, 8))


@case("index")
def index() -> Any:
    """Reading and writing by indices of one and of several axes."""
    p = {"w": normal(1, 5, 6, 4), "u": normal(2, 6, 4), "s": normal(3, 3)}

    def loss(p: Tree, i: Any, j: Any, x: Any) -> Any:
        a = p["w"][i, j]
        b = p["w"][:, i]
        c = p["u"].at[i, j % 4].set(2 * p["s"][0]).at[0].multiply(p["s"][1])
        d = lax.dynamic_slice(p["w"], (i[0], 1, j[0]), (2, 3, 1))
        e = lax.dynamic_update_slice(p["u"], x[:2, :2] * p["s"][2], (i[1], j[1]))
        f = jax.ops.segment_max(x * p["s"][1], i, num_segments=5)
        g = jnp.take_along_axis(p["u"], (i[:, None] + jnp.arange(4)) % 6, axis=0)
        h = jnp.pad(p["u"], ((1, 2), (0, 3)), mode="reflect")
        k = jnp.flip(p["w"], (0, 2))[::2, 1:, ::-1]
        parts = (a, b, c, d, e, jnp.where(jnp.isfinite(f), f, 0), g, h, k)
        return sum((t * (1 + jnp.arange(t.size).reshape(t.shape) % 3)).mean() ** 2 for t in parts)

    return p, loss, optax.sgd(0.1), (integers(4, 5, 6), integers(5, 6, 6), normal(6, 6, 4))


@case("functions")
def functions() -> Any:
    """Elementwise functions and their gradients."""
    p = {"w": normal(1, 4, 5)}

    def loss(p: Tree, x: Any) -> Any:
        w = p["w"]
        parts = (
            jnp.log1p(w * w),
            jnp.expm1(w),
            jax.nn.softplus(w),
            jax.scipy.special.erf(w),
            jax.nn.gelu(w, approximate=False),
            jnp.cbrt(1 + w),
            jnp.clip(w, -0.2, 0.2),
            jnp.round(w * 3) + w,
            jnp.sin(w) * jnp.cos(w) + jnp.tan(w),
            jnp.arctan(w) + jnp.sinh(w) + jnp.cosh(w),
            jnp.floor(w) + jnp.sign(w) * w,
            (x + w) ** 3 / (2 + w),
            jax.nn.logsumexp(w, 0) + jnp.prod(1 + w, 1).sum(),
            jnp.remainder(w, 0.3),
            jax.lax.erf_inv(jnp.tanh(w)),
            jnp.linalg.norm(w) + jnp.cumsum(w, 1)[:, -1:],
            jax.nn.elu(w) + jax.nn.leaky_relu(w) + jax.nn.hard_swish(w),
            jnp.median(w) + jnp.std(w),
        )
        return sum((t * t).mean() for t in parts)

    return p, loss, optax.lamb(1e-2), (normal(2, 4, 5),)


@case("cond")
def cond() -> Any:
    """Steps that data skip, gathered gradients, and a loop with a fixed number of turns."""
    p = {"w": normal(1, 6, 6)}

    def loss(p: Tree, x: Any) -> Any:
        h = lax.fori_loop(0, 4, lambda i, h: jnp.tanh(h @ p["w"]) + i * 0.01, x)
        h = lax.cond(h.sum() > 0, lambda h: h * 2, lambda h: h - 1, h)
        return (h * h).mean()

    optimizer = optax.MultiSteps(optax.apply_if_finite(optax.adam(1e-2), 2), 2)
    return p, loss, optimizer, (normal(2, 3, 6),)


def flat(tree: Tree) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def run(name: str, keep: Path | None) -> tuple[bool, str]:
    p, loss, optimizer, data = CASES[name]()
    # A buffer is donated once.
    p, s = jax.tree.map(lambda a: jnp.array(a, copy=True), (p, optimizer.init(p)))

    def step(p: Tree, s: Tree, *data: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(p, *data)
        updates, s = optimizer.update(gradients, s, p)
        return optax.apply_updates(p, updates), s, value

    jitted = jax.jit(step, donate_argnums=(0, 1))
    exported = export.export(jitted, platforms=["cpu"])(p, s, *data)
    folder = Path(tempfile.mkdtemp())
    module = folder / f"{name}.mlir"
    module.write_text(str(exported.mlir_module()))
    # Names are those of the arguments.
    names = [f"data[{i}]" for i in range(len(data))]
    first = {f"p{k}": v for k, v in flat(p).items()} | {f"s{k}": v for k, v in flat(s).items()}
    array = lambda v: np.array(v, order="C")  # noqa: E731
    params, feeds, after = (folder / f"{part}.safetensors" for part in ("params", "feeds", "after"))
    # Arguments that the step does not read are not in the module.
    kept = [[*first, *names][i] for i in exported.module_kept_var_idx]
    first = {k: array(v) for k, v in first.items() if k in kept}
    fed = {k: array(v) for k, v in zip(names, data, strict=True) if k in kept}
    save_file(first, params)
    save_file(fed, feeds)
    losses = []
    for _ in range(STEPS):
        p, s, value = jitted(p, s, *data)
        losses.append(float(value))
    right = {f"p{k}": array(v) for k, v in flat(p).items()} | {f"s{k}": array(v) for k, v in flat(s).items()}
    right = {k: v for k, v in right.items() if k in kept}
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / module.name).write_text(without_places(module.read_text()))
        save_file(first | fed, keep / f"{name}.given.safetensors")
        save_file(right | {"losses": np.asarray(losses, np.float32)}, keep / f"{name}.right.safetensors")
    call = [LMSC, "run", module, "--params", params, "--feeds", feeds, "--steps", str(STEPS), "--save", after]
    ran = subprocess.run([str(part) for part in call], capture_output=True, text=True, check=False)
    if ran.returncode:
        return False, (ran.stderr or ran.stdout).strip()[-600:]
    found = [float(line.split()[-1]) for line in ran.stdout.splitlines() if line.startswith("step ")]
    short = "bf16" in name
    tolerance = SHORT_TOLERANCE if short else TOLERANCE
    got = load_file(after)
    worst = max(abs(a - b) / max(1, abs(b)) for a, b in zip(found, losses, strict=True))
    where = "loss"
    for key, wanted in right.items():
        if key not in got:
            return False, f"`{key}` is no state"
        a, b = got[key].astype(np.float64), wanted.astype(np.float64)
        differences = np.sort(np.ravel(np.abs(a - b) / np.maximum(1, np.abs(b))))
        difference = float(differences[-1 - int(SHARE * differences.size)]) if differences.size else 0.0
        if not difference <= worst:
            worst, where = difference, key
    if not worst <= tolerance:
        return False, f"{where} differs by {worst:.1e}; losses {found}, right {losses}"
    planned = plan(module, params, feeds, folder)
    return planned is None, planned or f"equal to {worst:.1e}"


def without_places(text: str) -> str:
    """The module without the lines of the program from which its operations come; the names of arguments stay."""
    text = re.sub(r" loc\((#loc\d*|unknown|\"[^\"]*\"\(#loc\d*\))\)", "", text)
    return "".join(line + "\n" for line in text.splitlines() if not line.startswith("#loc"))


def plan(module: Path, params: Path, feeds: Path, folder: Path) -> str | None:
    """Why a plan of the step for 80 % of its peak is wrong; None if it is right, or if no plan is that small."""
    first, second = folder / "whole.safetensors", folder / "planned.safetensors"
    whole = [LMSC, "run", module, "--params", params, "--feeds", feeds, "--steps", "2", "--save", first]
    planned = [LMSC, module, "--target", "host", "--budget", "80%", "-o", folder / "planned.onnx"]
    again = [LMSC, "run", folder / "planned.onnx", "--params", params, "--feeds", feeds, "--steps", "2"]
    for call in (whole, planned, [*again, "--save", second]):
        ran = subprocess.run([str(part) for part in call], capture_output=True, text=True, check=False)
        if call is planned and ran.returncode == 1:
            return None
        if ran.returncode:
            return (ran.stderr or ran.stdout).strip()[-600:]
    a, b = load_file(first), load_file(second)
    other = [key for key in a if a[key].tobytes() != b[key].tobytes()]
    return f"the plan computes other bits of {other[:3]}" if other else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    chosen = [n for n in CASES if not arguments.names or any(part in n for part in arguments.names)]
    wrong = 0
    for name in chosen:
        is_right, said = run(name, arguments.keep)
        wrong += not is_right
        print("right" if is_right else "WRONG", "|", name, "|", said, flush=True)
    print(f"{len(chosen) - wrong} of {len(chosen)} steps are equal to JAX's")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
