"""Checks the documentation and builds it as a site.

A `console` block of a Markdown file is run where the line above it is `<!-- run -->`: its commands run one after the other in a
temporary folder that has the repository's files, with `lmsc` in PATH. The blocks of one file share the folder. Each command must
exit with status 0 (`<!-- run: exit 1 -->`: the last one with 1), and print the lines that follow it, if there are any; a line `...`
stands for any lines, and `...` within a line for any text. In `docs`, a block that is not run says why:
`<!-- not run: needs a GPU -->`. A block below `<!-- from FILE -->` is a part of that file.

The answers of commands with --json are those of the schemas in docs/reference/schemas.

The site has the pages of `docs`, those of other folders that PAGES lists, the help of each command, and pages of `lmsc plan`.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema

ROOT = Path(__file__).resolve().parents[1]
LMSC = os.environ["LMSC"]
BUILD, SITE = ROOT / "target/docs", ROOT / "target/site"

# Files outside `docs` that are pages, too, and where they are in the site.
PAGES = {
    "ARCHITECTURE.md": "explanation/architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "testdata/instances/README.md": "reference/instances.md",
    "testdata/traces/README.md": "reference/traces.md",
    **{str(path.relative_to(ROOT)): str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("bench/**/*.md"))},
}

# Pages of `lmsc plan` in the gallery: file, title, and the arguments.
STEP = "testdata/models/{0}/training_model.onnx --optimizer testdata/models/{0}/optimizer_model.onnx"
GALLERY = [
    ("resnet50", "ResNet-50, batch 256, in 8 GiB of 21", STEP.format("resnet50") + " --dim batch=256 --budget 8GiB --effort 25"),
    ("bert", "BERT base with AdamW, batch 16, 0.7 of its peak", STEP.format("bert_base") + " --dim batch=16 --budget 0.7x --effort 3"),
    ("unet3d", "A 3D U-Net, a third of its peak", STEP.format("unet3d") + " --dim batch=1 --budget 0.33x --effort 10"),
    ("vgg16", "VGG-16, batch 64, in 3 GiB", STEP.format("vgg16") + " --dim batch=64 --budget 3GiB"),
    (
        "planners",
        "Eleven planners on one instance",
        "--instance testdata/instances/dag_resnet50_224_b256.json --budget 6GiB --compare all",
    ),
]

# A call with --json for each schema in docs/reference/schemas; the status of all but `error` is 0. {plan}, {model} and {buffers} are
# files that are written first.
TINY = STEP.format("tiny_mlp") + " --dim batch=8"
ANSWERS = {
    "bench": "bench testdata/instances/dag_vgg16_224_b64.json --compare lru,swap-only --budget 0.8x",
    "check": "check {plan} " + TINY,
    "compare": "compare " + TINY,
    "compile": TINY + " --budget 0.9x --run --steps 1",
    "error": TINY + " --budget 1KiB",
    "explain": "explain " + TINY + " --budget 0.9x --tensor {tensor}",
    "fit": "fit " + TINY + " --gpu t4",
    "inspect": "inspect " + TINY,
    "launches": "launches " + TINY,
    "offsets": "offsets {buffers} --capacity 8",
    "passes": "passes",
    "plan": "plan " + TINY + " --budget 0.9x --noise 10 --compare all",
    "run": "run " + TINY + " --steps 1",
    "survival": "verify {model} {model} --survives",
    "sweep": "sweep " + TINY + " --budget 0.5x..1x",
    "targets": "targets",
    "verify": "verify " + TINY + " {model}",
}

MARK = re.compile(r"<!-- (run|not run)(?:: (.+?))? -->")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
failures: list[str] = []


@dataclass
class Block:
    """A `console` block: `line` is the number of its first line."""

    line: int
    marks: tuple[str, str] | None
    commands: list[tuple[str, list[str]]] = field(default_factory=list)


def blocks(text: str) -> list[Block]:
    """The `console` blocks of a Markdown text."""
    found: list[Block] = []
    inside = False
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = not inside and line == "```console"
            if inside:
                mark = MARK.fullmatch(before)
                found.append(Block(number + 1, (mark[1], mark[2] or "") if mark else None))
        elif inside:
            commands = found[-1].commands
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif commands and commands[-1][0].endswith("\\") and not commands[-1][1]:
                commands[-1] = (f"{commands[-1][0]}\n{line}", [])
            elif commands:
                commands[-1][1].append(line)
        before = line or before
    return found


def run(block: Block, folder: Path) -> list[tuple[int, str]]:
    """Status and output of each command."""
    path = f"{folder / '.bin'}:{os.environ['PATH']}"
    lines = "".join(f"{command}\nprintf '\\036%d\\036' $?\n" for command, _ in block.commands)
    call = ["bash", "-c", f"exec 2>&1\n{lines}"]
    done = subprocess.run(call, cwd=folder, env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    parts = done.stdout.decode().split("\036")
    return [(int(status), output) for output, status in zip(parts[::2], parts[1::2], strict=False)]


def matches(expected: list[str], output: str) -> bool:
    """Whether the shown output is the printed one, but for parts that `...` leaves out."""
    pattern = ""
    for line in expected:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.split("...")) + "\n"
    text = "".join(f"{line.rstrip()}\n" for line in output.splitlines())
    return re.fullmatch(pattern, text) is not None


def check_commands(path: Path, write: bool) -> int:
    """Runs the commands of a file and returns how many there are."""
    text, name = path.read_text(), path.relative_to(ROOT)
    ran, results = 0, []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for entry in ROOT.iterdir():
            if entry.name not in (".git", "target"):
                (folder / entry.name).symlink_to(entry)
        (folder / ".bin").mkdir()
        (folder / ".bin/lmsc").symlink_to(LMSC)
        for block in blocks(text):
            if block.marks is None:
                if name.parts[0] == "docs":
                    failures.append(f"{name}:{block.line}: no line `<!-- run -->` or `<!-- not run: REASON -->` above the block")
                continue
            kind, detail = block.marks
            if kind == "not run":
                if not detail:
                    failures.append(f"{name}:{block.line}: no reason why the block is not run")
                continue
            status = int(detail.removeprefix("exit ")) if detail else 0
            outcomes = run(block, folder)
            ran += len(block.commands)
            results.append((block, outcomes))
            for at, (command, expected) in enumerate(block.commands):
                wanted = status if at + 1 == len(block.commands) else 0
                code, output = outcomes[at] if at < len(outcomes) else (-1, "")
                differs = bool(expected) and not matches(expected, output)
                if code != wanted:
                    failures.append(f"{name}:{block.line}: `{command}` exits with {code}:\n{output}")
                elif differs and not write:
                    failures.append(f"{name}:{block.line}: `{command}` prints something else:\n{output}")
    if write:
        path.write_text(written(text, results))
    return ran


def written(text: str, results: list[tuple[Block, list[tuple[int, str]]]]) -> str:
    """The text with the output of commands whose output it shows and that differs, or is the word `OUTPUT`."""
    lines = text.splitlines()
    for block, outcomes in reversed(results):
        new = []
        for (command, expected), (_, output) in zip(block.commands, outcomes, strict=False):
            if expected and not matches(expected, output):
                expected = [line.rstrip() for line in output.splitlines()]
            new += [*f"$ {command}".splitlines(), *expected]
        old = sum(len(command.splitlines()) + len(expected) for command, expected in block.commands)
        lines[block.line - 1 : block.line - 1 + old] = new
    return "\n".join(lines) + "\n"


def check_excerpts(path: Path) -> None:
    """Checks that blocks that show a part of a file do."""
    for match in re.finditer(r"^<!-- from (\S+) -->\n+```\w+\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL):
        if match[2] not in (ROOT / match[1]).read_text():
            line = path.read_text()[: match.start()].count("\n") + 1
            failures.append(f"{path.relative_to(ROOT)}:{line}: {match[1]} has no such lines")


def prose(text: str) -> list[tuple[bool, str]]:
    """The lines, and whether each is outside fenced blocks."""
    fenced, lines = False, []
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        lines.append((not fenced and not fence, line))
        fenced ^= fence
    return lines


def tracked(pattern: str) -> list[Path]:
    call = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", pattern]
    names = subprocess.run(call, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).exists()]


def check_links(show: bool) -> int:
    """Checks that the targets of links exist, and returns the number of links. mkdocs checks anchors."""
    number = 0
    for path in tracked("*.md"):
        for at, (is_prose, line) in enumerate(prose(path.read_text()), 1):
            for link in LINK.finditer(re.sub(r"`[^`]*`", "", line)) if is_prose else ():
                target = link[3].split("#")[0]
                number += 1
                place = f"{path.relative_to(ROOT)}:{at}"
                if re.match(r"[a-z]+:", link[3]):
                    if show:
                        print(f"{place}: {link[3]}")
                elif target and not (path.parent / target).exists() and not is_made(path.parent / target):
                    failures.append(f"{place}: there is no {target}")
    return number


def is_made(path: Path) -> bool:
    """Whether a page is one that this program makes."""
    name = Path(os.path.normpath(path)).relative_to(ROOT).as_posix()
    return name in ("docs/reference/command-line.md", "docs/gallery/index.md")


def page_of(name: str) -> str | None:
    """Where a file of the repository is in the site."""
    if name in PAGES:
        return PAGES[name]
    if name == "README.md":
        return "index.md"
    return name.removeprefix("docs/") if name.startswith("docs/") else None


def moved(text: str, source: str, page: str) -> str:
    """The text of a file as that of a page: links lead to pages, those to other files are names; figures are part of the page."""
    folder = Path(source).parent

    def link(match: re.Match[str]) -> str:
        picture, words, target = match[1], match[2], match[3]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, _, anchor = target.partition("#")
        name = os.path.normpath(folder / path)
        if (ROOT / name).is_dir():
            name = f"{name}/README.md"
        place = page_of(name)
        if picture and name.endswith(".svg") and name.startswith("docs/figures/"):
            drawing = (ROOT / name).read_text().replace("\n", "")
            return f'<figure markdown="0" role="img" aria-label="{words}">{drawing}</figure>'
        if place is None:
            return match[0] if picture else words
        relative = os.path.relpath(place, Path(page).parent)
        return f"{picture}[{words}]({relative}{'#' + anchor if anchor else ''})"

    return "\n".join(LINK.sub(link, line) if is_prose else line for is_prose, line in prose(text)) + "\n"


def lmsc(*arguments: str) -> str:
    return subprocess.run([LMSC, *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout.decode()


def closed(schema: object) -> object:
    """The schema with no other fields in an object than those that it lists."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: closed(part) for key, part in schema.items()}
    return {**parts, "additionalProperties": False} if "properties" in parts else parts


def check_answers() -> int:
    """Compares an answer of each command with its schema, and returns how many there are."""
    names = {path.stem for path in (ROOT / "docs/reference/schemas").glob("*.json")}
    if names != ANSWERS.keys():
        failures.append(f"docs/reference/schemas: not the schemas of scripts/docs.py: {sorted(names ^ ANSWERS.keys())}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = {"plan": folder / "plan.json", "model": folder / "model.onnx", "buffers": folder / "buffers.csv"}
        lmsc("-q", *f"{TINY} --budget smallest --save-plan {files['plan']} -o {files['model']}".split())
        files["buffers"].write_text("id,lower,upper,size\na,0,1,4\nb,0,2,4\n")
        tensor = json.loads(lmsc("inspect", *TINY.split(), "--json"))["largest"][0]["name"]
        for name in sorted(names & ANSWERS.keys()):
            call = ANSWERS[name].format(**files, tensor=tensor).split()
            quiet = subprocess.DEVNULL if name == "error" else None
            done = subprocess.run([LMSC, *call, "--json", "-q"], cwd=ROOT, stdout=subprocess.PIPE, stderr=quiet, check=False)
            schema = json.loads((ROOT / f"docs/reference/schemas/{name}.json").read_text())
            if (done.returncode == 0) == (name == "error"):
                failures.append(f"lmsc {' '.join(call)} --json: exit status {done.returncode}")
                continue
            for fault in jsonschema.Draft202012Validator(closed(schema)).iter_errors(json.loads(done.stdout)):
                failures.append(f"docs/reference/schemas/{name}.json: {fault.json_path}: {fault.message}")
    return len(names)


def command_line() -> str:
    """The page of the command line: the help of each command."""
    top = lmsc("--help")
    names = re.findall(r"^  ([a-z][a-z-]*) +[A-Z]", top.split("Arguments:")[0], re.MULTILINE)
    parts = [("lmsc MODEL", top)] + [(f"lmsc {name}", lmsc(name, "--help")) for name in names if name != "help"]
    text = "# Command line\n\nMade from `lmsc --help` and the help of each command. `lmsc COMMAND -h` prints a shorter form.\n"
    for title, help_text in parts:
        text += f"\n## {title}\n\n```text\n{help_text.rstrip()}\n```\n"
    return text


def gallery(folder: Path) -> str:
    """The gallery's page; writes the pages that it shows."""
    folder.mkdir(parents=True, exist_ok=True)
    text = (
        "# Gallery\n\nPages of `lmsc plan --report`, made when this site was built: memory over time, the three engines, and the story"
        " of each tensor. All times are modelled.\n\n"
    )
    for name, title, arguments in GALLERY:
        started = time.monotonic()
        lmsc("plan", *arguments.split(), "--report", str(folder / f"{name}.html"))
        print(f"gallery: {name} in {time.monotonic() - started:.1f} s", flush=True)
        text += f"- [{title}]({name}.html)\n\n    ```text\n    lmsc plan {arguments} --report {name}.html\n    ```\n\n"
    return text


def site() -> None:
    """Assembles the pages and builds the site."""
    shutil.rmtree(BUILD, ignore_errors=True)
    pages = BUILD / "pages"
    shutil.copytree(ROOT / "docs", pages, ignore=shutil.ignore_patterns("mkdocs.yml"))
    sources = {f"docs/{path.relative_to(pages).as_posix()}": path for path in pages.rglob("*.md")}
    for source, page in PAGES.items():
        if (ROOT / source).exists():
            sources[source] = pages / page
    for source, path in sources.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(moved((ROOT / source).read_text(), source, path.relative_to(pages).as_posix()))
    for picture in ROOT.glob("bench/**/*.svg"):
        shutil.copy(picture, pages / picture.relative_to(ROOT))
    (pages / "reference").mkdir(exist_ok=True)
    (pages / "reference/command-line.md").write_text(command_line())
    made = gallery(pages / "gallery")
    (pages / "gallery/index.md").write_text(made)
    shutil.copy(ROOT / "docs/mkdocs.yml", BUILD)
    call = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "-f", str(BUILD / "mkdocs.yml"), "-d", str(SITE)]
    if subprocess.run(call, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}).returncode:
        failures.append("docs/mkdocs.yml: mkdocs does not build the site")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="run the commands of these files only, and build nothing")
    parser.add_argument("--write", action="store_true", help="write what commands print into the files")
    parser.add_argument("--no-commands", action="store_true", help="run no command")
    parser.add_argument("--open-links", action="store_true", help="print the links to other sites")
    arguments = parser.parse_args()

    files = [path.resolve() for path in arguments.files]
    files = files or [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *tracked("docs/*.md")]
    commands = 0
    for path in [] if arguments.no_commands else files:
        started = time.monotonic()
        number = check_commands(path, arguments.write)
        commands += number
        if number:
            print(f"{path.relative_to(ROOT)}: {number} commands in {time.monotonic() - started:.1f} s", flush=True)
    for path in files:
        check_excerpts(path)
    links = 0
    if not arguments.files:
        print(f"schemas: the answers of {check_answers()} commands", flush=True)
        links = check_links(arguments.open_links)
        site()
    for failure in failures:
        print(failure, file=sys.stderr)
    if failures:
        sys.exit(f"docs: {len(failures)} faults")
    pages = len(list(SITE.rglob("*.html"))) if not arguments.files else 0
    print(f"docs: {commands} commands do what is shown, {links} links lead somewhere, {pages} pages")


if __name__ == "__main__":
    main()
