#!/usr/bin/env python3
"""What the libraries show to others: exactly the public functions.

SPDX-License-Identifier: Apache-2.0

usage: check_symbols.py FOLDER, the folder that holds libtegula.so and libtegula.a. The shared
library exports every function that include/tegula/tegula.h and tegula_mpi.h declare with TEGULA_API
and nothing else; every external symbol of the static one begins with tegula_. Plugins
(FOLDER/tegula/*.so) export tegula_plugin_entry only.
"""

import pathlib
import re
import subprocess
import sys

DECLARATION = re.compile(r"^TEGULA_API\b[^;(]*?\b(\w+)\s*\(", re.M)


def symbols(*command):
    """Names from nm; symbol versions (kind A) are no symbols of ours."""
    lines = subprocess.run(
        ["nm", "--defined-only", *command], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    fields = [line.split() for line in lines]
    return {field[2].split("@")[0] for field in fields if len(field) == 3 and field[1] != "A"}


def main(folder):
    root = pathlib.Path(__file__).resolve().parent.parent
    texts = [(root / "include/tegula" / name).read_text() for name in ("tegula.h", "tegula_mpi.h")]
    header = re.sub(r"/\*.*?\*/", "", "\n".join(texts), flags=re.S)
    declared = set(DECLARATION.findall(header))
    exported = symbols("-D", folder / "libtegula.so")
    external = symbols("--extern-only", folder / "libtegula.a")
    problems = [
        f"{name}: declared in tegula.h, not exported by libtegula.so"
        for name in sorted(declared - exported)
    ]
    problems += [
        f"{name}: exported by libtegula.so, not declared in tegula.h"
        for name in sorted(exported - declared)
    ]
    problems += [
        f"{name}: external in libtegula.a, does not begin with tegula_"
        for name in sorted(external)
        if not name.startswith("tegula_")
    ]
    plugins = sorted((folder / "tegula").glob("*.so"))
    problems += [
        f"{plugin.name} exports {sorted(names)}: expected tegula_plugin_entry only"
        for plugin in plugins
        if (names := symbols("-D", plugin)) != {"tegula_plugin_entry"}
    ]
    if not declared or not external:
        problems.append("nothing to compare")
    print(
        "\n".join(problems)
        if problems
        else (
            f"symbols: {len(exported)} public functions exported, nothing else; {len(plugins)} "
            "plugins"
        )
    )
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: check_symbols.py FOLDER")
    sys.exit(main(pathlib.Path(sys.argv[1])))
