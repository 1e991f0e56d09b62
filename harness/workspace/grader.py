"""Runs pytest for the harness inside the sandbox and reports on descriptor 3; nothing that is printed counts.

The order comes as JSON on stdin: root, files (test files to run, empty for pytest's own choice), config (a settings file, null for
none, false for pytest's own choice), collect (true to list the tests only) and key. Every line of the report is a JSON list that
begins with the key, which the code under test has no plain way to know: [key, "collected", names], [key, "phase", name, when,
outcome], [key, "unreadable", name], [key, "trap", caught], [key, "exit", code].

The trap is a test of our own that must fail, run after all others: code under test that makes everything pass makes it pass too.
"""

import json
import os
import sys

import pytest
from _pytest.runner import runtestprotocol


class Reporter:
    def __init__(self, fd, key, trap_name):
        self._fd, self._key, self._trap_name = fd, key, trap_name

    def tell(self, *words):
        os.write(self._fd, json.dumps([self._key, *words]).encode() + b"\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        self.tell("collected", [item.nodeid for item in items])
        if items and self._trap_name:
            items.append(
                pytest.Function.from_parent(items[-1].getparent(pytest.Module), name=self._trap_name, callobj=spring)
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        if item.name != self._trap_name:
            return None
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        self.tell("trap", any(r.when == "call" and r.outcome == "failed" for r in reports))
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        outcome = "skipped" if hasattr(report, "wasxfail") else report.outcome
        self.tell("phase", report.nodeid, report.when, outcome)

    def pytest_collectreport(self, report):
        if report.failed:
            self.tell("unreadable", report.nodeid)


def spring():
    raise AssertionError("this test has to fail")


def main():
    order = json.loads(sys.stdin.buffer.read())
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    fd = os.dup(3)
    os.close(3)
    reporter = Reporter(fd, order["key"], None if order["collect"] else "test_" + order["key"][:8])
    root = order["root"]
    args = ["-q", "-p", "no:cacheprovider", "--tb=short", "--color=no", "--rootdir", root]
    if order["config"] is not False:
        args += ["-c", order["config"] or "/dev/null"]
    if order["collect"]:
        args.append("--collect-only")
    sys.path.insert(0, root)
    code = int(pytest.main([*args, *order["files"]], plugins=[reporter]))
    reporter.tell("exit", code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
