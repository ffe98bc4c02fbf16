"""Tells the numbers of tests as `cargo test` does, for those who count both."""

from typing import Any


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int) -> None:
    count = {k: len(terminalreporter.stats.get(k, [])) for k in ("passed", "failed", "error", "skipped")}
    verdict = "ok" if exitstatus == 0 else "FAILED"
    failed = count["failed"] + count["error"]
    terminalreporter.write_line(f"test result: {verdict}. {count['passed']} passed; {failed} failed; {count['skipped']} ignored")
