"""``python -m tegula`` is the shell command.

SPDX-License-Identifier: Apache-2.0
"""

import os
import sys

from ._context import _candidates, plugin_path


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "tegula")
    if not os.path.exists(program):
        sys.exit("tegula: this package was built without the shell command")
    environment = dict(os.environ, TEGULA_PLUGIN_PATH=plugin_path())
    candidates = _candidates()
    if (
        candidates is not None
        and "TEGULA_HDF5_LIBRARY" not in environment
        and "VIRTUAL_ENV" not in environment
    ):
        environment["VIRTUAL_ENV"] = sys.prefix  # where the command looks for a libhdf5
    os.execve(program, [program, *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
