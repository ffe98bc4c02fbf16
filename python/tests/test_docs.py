"""The tutorial of docs and the notebook of examples give the results that they show."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs/tutorials/pytorch.md"
NOTEBOOK = ROOT / "examples/python/budget.ipynb"


def test_the_tutorial_does_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = ""
    for language, code in re.findall(r"^```(python|text)\n(.*?)^```", TUTORIAL.read_text(), re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(compile(code, TUTORIAL.name, "exec"), names)
            printed = capsys.readouterr().out
        else:
            # A line `...` stands for any lines, and `...` within one for any text.
            lines = (".*".join(re.escape(part) for part in line.split("...")) for line in code.splitlines())
            pattern = "".join(r"(?:.*\n)*?" if line == ".*" else line + "\n" for line in lines)
            assert re.fullmatch(pattern, printed), printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.pt", "step.onnx", "step.safetensors"]


def test_the_notebook_shows_what_its_cells_print(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for number, cell in enumerate(json.loads(NOTEBOOK.read_text())["cells"]):
        if cell["cell_type"] != "code":
            continue
        place = f"{NOTEBOOK.name}, cell {number}"
        exec(compile("".join(cell["source"]), place, "exec"), names)
        texts = ("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")
        shown, printed = "".join(texts), capsys.readouterr().out
        # Last digits depend on the processor.
        number_ = r"\d+\.\d+"
        assert re.sub(number_, "#", printed) == re.sub(number_, "#", shown), place
        for mine, its in zip(re.findall(number_, printed), re.findall(number_, shown), strict=True):
            assert float(mine) == pytest.approx(float(its), rel=1e-2), place
    assert "step" in names
