"""Writes man pages of lmsc and of each of its commands from their help: python3 scripts/man.py LMSC FOLDER"""

import re
import subprocess
import sys
from pathlib import Path


def output(*call: str) -> str:
    return subprocess.run(call, check=True, stdout=subprocess.PIPE).stdout.decode()


def escaped(text: str) -> str:
    """The text as roff prints it, line by line."""
    lines = (line.replace("\\", "\\e").replace("-", "\\-") for line in text.splitlines())
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)


def page(name: str, version: str, help_text: str) -> str:
    """A page: the first paragraph of the help is its summary, each unindented line that ends with a colon begins a section."""
    summary, _, rest = help_text.partition("\n\n")
    summary = " ".join(summary.split())
    text = f'.TH "{name.upper()}" 1 "" "lmsc {version}" "lmsc"\n.SH NAME\n{escaped(name)} \\- {escaped(summary.rstrip("."))}\n'
    sections = [("Description", "")]
    for line in rest.splitlines():
        usage = line.startswith("Usage: ")
        if usage or re.fullmatch(r"\S.*:", line):
            sections.append(("Synopsis", line.removeprefix("Usage: ") + "\n") if usage else (line[:-1], ""))
        else:
            title, body = sections[-1]
            sections[-1] = (title, f"{body}{line}\n")
    sections.sort(key=lambda section: {"Synopsis": 0, "Description": 1}.get(section[0], 2))
    for title, body in sections:
        if body.strip():
            text += f'.SH "{title.upper()}"\n.nf\n{escaped(body.strip(chr(10)))}\n.fi\n'
    return text


def main() -> None:
    program, folder = sys.argv[1], Path(sys.argv[2])
    version = output(program, "--version").split()[1]
    top = output(program, "--help")
    names = re.findall(r"^  ([a-z][a-z-]*)(?:  |$)", top.split("Commands:")[1].split("\n\n")[0], re.MULTILINE)
    (folder / "lmsc.1").write_text(page("lmsc", version, top))
    for name in names:
        if name != "help":
            (folder / f"lmsc-{name}.1").write_text(page(f"lmsc-{name}", version, output(program, name, "--help")))


if __name__ == "__main__":
    main()
