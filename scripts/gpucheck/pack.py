"""The preparation on a processor: everything that need not use a GPU's minutes."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from . import check as checks
from . import tensors
from .cases import FULL, LATE, OPERATORS, PLANNERS, REHEARSAL, ROOT, TARGET, TIGHT, Case, Cases, case
from .correct import OPTIMIZERS, PLANNED, STEPS, WAYS, folder_of, host_name

MIB = 1 << 20
# Limits of the archive and of the files that are copied with it: the tracked tree, and files that are neither tracked nor ignored.
MOST_PACKED = 40 * MIB
MOST_TRAVELS = 64 * MIB
ARCHIVE = "pack.tar.xz"
# Jobs, each with the name under which its failure is reported.
Jobs = list[tuple[str, Callable[[], object]]]


class Packing:
    """A folder that is filled, and then becomes an archive."""

    def __init__(self, folder: Path, lmsc: Path, rehearsal: bool) -> None:
        self.folder, self.stage = folder, folder / "stage"
        self.rehearsal = rehearsal
        self.cases: Cases = REHEARSAL if rehearsal else FULL
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("plans", "host", "scratch"):
            (self.stage / name).mkdir(parents=True)
        self.lmsc = self.stage / "lmsc"
        shutil.copy(lmsc, self.lmsc)
        # Names of functions and lines: five sixths of the file.
        if strip := shutil.which("strip"):
            subprocess.run([strip, str(self.lmsc)], check=True)
        self.failed: dict[str, str] = {}
        # How far a large model carries a last bit, by the name of the host's result.
        self.spread: dict[str, float] = {}
        # Plans that there are not: of a small model, a planner may save nothing.
        self.unplanned: list[str] = []
        self.environment = checks.environment(self.stage)

    def call(self, *arguments: object, over_null: bool = False) -> str:
        line = [str(self.lmsc), *map(str, arguments)]
        environment = self.environment if over_null else os.environ
        done = subprocess.run(line, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
        if done.returncode:
            told = [text for text in done.stderr.splitlines() if text.strip()]
            raise checks.Failed(f"{checks.brief(line)}: {' / '.join(told[:6]) or done.returncode}")
        return done.stdout

    def each(self, what: str, jobs: Jobs, at_once: int) -> None:
        """Does all of the jobs; a failure is kept under the job's name."""

        def one(job: tuple[str, Callable[[], object]]) -> None:
            name, work = job
            try:
                work()
            except (checks.Failed, ValueError, OSError) as error:
                self.failed[name] = str(error)
                print(f"  {name}: {error}", flush=True)

        began = time.monotonic()
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(one, jobs))
        print(f"{what}: {len(jobs)} in {time.monotonic() - began:.0f} s", flush=True)

    # --- packed files ---

    def plans(self) -> None:
        """The plans, with the workspaces that kernels of CUDA have."""

        def one(it: Case, budget: str, precision: str) -> None:
            out = self.stage / "plans" / it.plan(budget, precision)
            self.call(*it.source(), "--target", TARGET, "--budget", budget, "--precision", precision, "-o", out)

        def tight(it: Case, planner: str) -> None:
            out = self.stage / "plans" / it.tight(planner)
            for budget in TIGHT:
                asked = ["--target", TARGET, "--planner", planner, "--budget", budget, "-o", out]
                try:
                    self.call(*it.source(OPTIMIZERS[PLANNED]), *asked)
                    return
                except checks.Failed as error:
                    if not any(told in str(error) for told in ("does not fit", "no addresses were found")):
                        raise
            self.unplanned.append(out.name)

        jobs: Jobs = [(it.plan(*how), partial(one, it, *how)) for it, *how in self.cases.budgeted()]
        late, name = self.cases.waits
        asked = [*late.source(), "--target", TARGET, "--planner", LATE, "--budget", late.budgets[-1]]
        jobs.append((name, partial(self.call, *asked, "-o", self.stage / "plans" / name)))
        jobs += [(it.tight(planner), partial(tight, it, planner)) for it in self.cases.parity for planner in PLANNERS]
        self.each("plans", jobs, os.cpu_count() or 1)

    def host(self) -> None:
        """The host's results: all values of the operators, and the state after runs."""

        def one(name: str, *arguments: object) -> None:
            out = self.stage / "scratch" / name
            self.call("run", *arguments, out)
            tensors.write(self.stage / "host" / f"{name}.digest", tensors.digest(out))
            out.unlink()

        def left(it: Case, optimizer: str) -> None:
            source = it.source(OPTIMIZERS[optimizer])
            one(host_name(it, optimizer), *source, "--steps", STEPS, "--save")

        def spread(it: Case) -> None:
            """The effect of another last bit in each element of the input."""
            name, given = host_name(it, "gradients"), self.stage / "scratch" / "given"
            out = given.with_suffix(".left")
            source = ["run", *it.source(None), "--steps"]
            self.call(*source, 1, "--fetch", it.floats, "--out", given)
            tensors.flip_last_bits(given)
            self.call(*source, STEPS, "--feeds", given, "--save", out)
            # The given tensors are saved, too.
            whole = tensors.read(self.stage / "host" / f"{name}.digest"), tensors.digest(out)
            before, after = ({key: kept for key, kept in left.items() if key != it.floats} for left in whole)
            self.spread[name], _ = tensors.compare(after, before, 1.0)

        runs = [(it, optimizer) for it in self.cases.parity for optimizer in OPTIMIZERS]
        runs += [(it, "gradients") for it in self.cases.large]
        jobs: Jobs = [(host_name(*run), partial(left, *run)) for run in runs]
        jobs.append(("operators", partial(one, "operators", OPERATORS, "--steps", 1, "--fetch", "all", "--out")))
        jobs += [(f"{it.name}, last bits", partial(spread, it)) for it in self.cases.large if it.floats]
        # The host uses every processor by itself.
        self.each("host results", jobs, 1)

    def kernels(self) -> None:
        """Kernels, compiled as runs over a driver without a device ask for them."""
        if "LMSC_NULL_DRIVER" not in os.environ:
            raise checks.Failed("LMSC_NULL_DRIVER names no folder with the null driver")

        def one(*arguments: object) -> None:
            with_device = [] if arguments[0] == "calibrate" else ["--device", "cuda"]
            self.call(*arguments, *with_device, over_null=True)

        lines: list[list[object]] = [["run", OPERATORS, "--steps", 1], ["run", OPERATORS, "--steps", 1, "--own-kernels"]]
        every = [(it, optimizer) for it in (*self.cases.parity, case("tiny_cnn", batch=2)) for optimizer in OPTIMIZERS.values()]
        every += [(it, None) for it in self.cases.large]
        ways = [WAYS["cuda"], WAYS["own kernels"], WAYS["chunks"]]
        lines += [["run", *it.source(optimizer), "--steps", 1, *way] for it, optimizer in every for way in ways]
        whole = [it for it in (*self.cases.resnet, *self.cases.gpt2, *self.cases.rest) if it.fits]
        smoke = [case("tiny_mlp", batch=4), case("tiny_cnn", batch=2)]
        for it in [*whole, *smoke]:
            lines += [["run", *it.source(), "--steps", 1, *rest] for rest in ([], ["--precision", "tf32"], ["--own-kernels"])]
        plans = sorted((self.stage / "plans").iterdir())
        lines += [["run", plan, "--steps", 1, "--precision", "tf32" if "tf32" in plan.name else "f32"] for plan in plans]
        for it in (self.cases.resnet[0], smoke[0]):
            profile = self.stage / "scratch" / "profile.json"
            lines.append(["calibrate", *it.source(), "--device", "cuda", "--steps", 1, "-o", profile])
        jobs: Jobs = [(checks.brief(list(map(str, line))), partial(one, *line)) for line in lines]
        # One first: the shared kernels are compiled once.
        self.each("kernels that all need", jobs[:2], 1)
        self.each("kernels", jobs[2:], os.cpu_count() or 1)

    def python(self) -> None:
        """The Python package, where a wheel of it was built."""
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        for wheel in sorted((target / "python-wheels").glob("*.whl"))[:1]:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(self.stage / "python")
            module = next((self.stage / "python").rglob("_lmsc*.so"))
            if strip := shutil.which("strip"):
                subprocess.run([strip, str(module)], check=True)

    # --- the archive ---

    def about(self) -> dict[str, Any]:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
        dirty = subprocess.run(["git", "status", "--porcelain"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
        cache = self.stage / "cache"
        return {
            "format": 1,
            "rehearsal": self.rehearsal,
            "commit": commit + ("+" if dirty else ""),
            "target": TARGET,
            "nvrtc": os.environ.get("LMSC_NVRTC", ""),
            "kernels": sorted(path.name for path in cache.rglob("*.cubin")),
            "failed": self.failed,
            "spread": self.spread,
            "unplanned": sorted(self.unplanned),
            "bytes": {name: folder_of(self.stage / name) for name in ("plans", "host", "cache")}
            | {"lmsc": self.lmsc.stat().st_size},
        }

    def archive(self) -> dict[str, Any]:
        shutil.rmtree(self.stage / "scratch")
        about = self.about()
        (self.stage / checks.PACKED).write_text(json.dumps(about, indent=1) + "\n")
        with tarfile.open(self.folder / ARCHIVE, "w:xz", preset=1 if self.rehearsal else 6) as archive:
            archive.add(self.stage, ".")
        shutil.rmtree(self.stage)
        return about


def travelling() -> list[tuple[int, str]]:
    """The files that travel without being packed, the largest first."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=True, cwd=ROOT
    )
    names = [name.decode() for name in listed.stdout.split(b"\0") if name]
    sizes = [((ROOT / name).lstat().st_size, name) for name in set(names) if os.path.lexists(ROOT / name)]
    return sorted(sizes, key=lambda it: (-it[0], it[1]))


def sizes(folder: Path) -> bool:
    """Says how large it all is, and whether that can travel."""
    files, packed = travelling(), folder_of(folder)
    tree = sum(size for size, _ in files)
    print(f"{folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}: {packed / MIB:.1f} MiB packed "
          f"of at most {MOST_PACKED // MIB}; {len(files)} files of the tree: {tree / MIB:.1f} MiB; "
          f"together {(tree + packed) / MIB:.1f} of at most {MOST_TRAVELS // MIB}")  # fmt: skip
    if packed <= MOST_PACKED and tree + packed <= MOST_TRAVELS:
        return True
    print("that is too large; the largest files of the tree are:")
    for size, name in files[:15]:
        print(f"  {size / MIB:6.2f} MiB  {name}")
    return False


def pack(folder: Path, lmsc: Path, rehearsal: bool) -> bool:
    """Fills the folder; whether all of it could be made, and is small enough."""
    packing = Packing(folder, lmsc, rehearsal)
    for make in (packing.plans, packing.host, packing.kernels, packing.python):
        make()
    about = packing.archive()
    told = ", ".join(f"{name} {size / MIB:.1f} MiB" for name, size in about["bytes"].items())
    print(f"unpacked: {told}; {len(about['kernels'])} compiled files")
    for name, why in packing.failed.items():
        print(f"failed: {name}: {why}", file=sys.stderr)
    return sizes(folder) and not packing.failed


def unpack(folder: Path, work: Path) -> Path:
    """The folder in which all is that was packed; made once for each archive."""
    archive = folder / ARCHIVE
    if not archive.exists():
        raise checks.Failed(f"{archive} is not there: run `scripts/gpu-check pack` first")
    packed = work / hashlib.blake2b(archive.read_bytes(), digest_size=8).hexdigest()
    if not (packed / checks.PACKED).exists():
        room = packed.with_suffix(".tmp")
        shutil.rmtree(room, ignore_errors=True)
        with tarfile.open(archive) as opened:
            opened.extractall(room, filter="data")
        room.rename(packed)
    shutil.rmtree(packed / "scratch", ignore_errors=True)
    (packed / "scratch").mkdir()
    return packed
