"""The tutorial of docs does what it shows."""

import re
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[2] / "docs/tutorials/pytorch.md"


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
