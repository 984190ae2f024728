#!/usr/bin/env python3
"""Adds up what scripts/test ran: JUnit files of ctest and pytest and the one-word
results of its checks.

SPDX-License-Identifier: Apache-2.0

The last line is `N passed, N failed, N skipped`; exit status 1 when anything failed. A runner that
ended with a status other than 0, or left no readable results, counts as a failure even when it
named none.
"""

import pathlib
import sys
import xml.etree.ElementTree as xml


def junit(path):
    """Yields (test name, passed|failed|skipped) for every test case of a JUnit file."""
    for case in xml.parse(path).getroot().iter("testcase"):
        name = f"{path.stem}: {case.get('classname', '')}.{case.get('name')}"
        if (
            case.find("failure") is not None
            or case.find("error") is not None
            or case.get("status") == "fail"
        ):
            yield name, "failed"
        elif case.get("status") == "notrun" and "SKIP_" not in case.find("skipped").get(
            "message", ""
        ):
            # ctest calls a program that is not there "skipped"
            yield f"{name}: could not be started", "failed"
        elif case.find("skipped") is not None or case.get("status") == "disabled":
            yield name, "skipped"
        else:
            yield name, "passed"


def runner(status_path):
    """The cases of one runner, plus a failure of its own where its status
    and its cases disagree."""
    status = status_path.read_text().strip()
    try:
        cases = list(junit(status_path.with_suffix(".xml")))
    except (OSError, xml.ParseError) as error:
        return [(f"{status_path.stem}: no readable results ({error})", "failed")]
    if status != "0" and not any(result == "failed" for _, result in cases):
        cases.append((f"{status_path.stem}: ended with status {status}", "failed"))
    return cases


def main(folder):
    results = []
    for path in sorted(folder.glob("*.check")):
        results.append((path.stem, path.read_text().strip()))
    for path in sorted(folder.glob("*.status")):
        results += runner(path)
    failed = [name for name, result in results if result not in ("passed", "skipped")]
    if failed or not results:
        print("failed:")
        print("\n".join(f"  {name}" for name in failed) or "  nothing ran")
    count = {kind: sum(result == kind for _, result in results) for kind in ("passed", "skipped")}
    print(f"{count['passed']} passed, {len(failed)} failed, {count['skipped']} skipped")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
