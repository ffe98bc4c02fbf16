"""Plays the environment with the program that docs/formats.md shows, as it stands there.

The plan that it ends with runs every kernel of the recorded iteration at least once, and takes longer than they do by the
predicted time. LMSC names the program under test.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
TRACE = ROOT / "testdata/traces/kmeans.jsonl"


def main() -> None:
    text = (ROOT / "docs/formats.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(programs) == 1, f"{len(programs)} programs in docs/formats.md"
    kernels = {json.loads(line).get("kernel") for line in TRACE.read_text().splitlines()} - {None}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(TRACE, folder)
        (folder / "lmsc").symlink_to(Path(os.environ["LMSC"]).resolve())
        call = [sys.executable, "-c", programs[0]]
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        found = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr
    overhead, steps = map(int, found.stdout.split())
    assert overhead >= 0 and steps >= len(kernels), found.stdout
    print(f"the program in docs/formats.md plans {steps} steps that take {overhead} ns longer")


if __name__ == "__main__":
    main()
