# Runs the functions check_* of a module in a process with Legate; prints a line for each.
# usage: harness.py MODULE.py FOLDER [NAME...]
#
# SPDX-License-Identifier: Apache-2.0
import importlib.util
import inspect
import json
import pathlib
import signal
import sys
import tempfile
import traceback


class Skip(Exception):
    pass


def main():
    # a shell starts what is in its background with Ctrl-C ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    path = pathlib.Path(sys.argv[1])
    sys.path.insert(0, str(path.parent))
    sys.modules["harness"] = sys.modules["__main__"]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # what it defines can be pickled
    spec.loader.exec_module(module)
    for name, check in inspect.getmembers(module, inspect.isfunction):
        if not name.startswith("check_") or (sys.argv[3:] and name not in sys.argv[3:]):
            continue
        entry = {"check": name, "skipped": None, "failure": None}
        with tempfile.TemporaryDirectory() as scratch:
            try:
                check(pathlib.Path(sys.argv[2]), pathlib.Path(scratch))
            except Skip as reason:
                entry["skipped"] = str(reason)
            except BaseException:
                entry["failure"] = traceback.format_exc()[-4000:]
        print("@@" + json.dumps(entry), flush=True)


if __name__ == "__main__":
    main()
