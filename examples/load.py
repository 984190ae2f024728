"""Loads one array out of a folder of shards (or a single file)
and prints its shape and the sum of each tile.

    python load.py shards/

SPDX-License-Identifier: Apache-2.0
"""

import sys

import tegula


def main(path: str) -> int:
    try:
        array = tegula.load(path, tiles=4, progress=sys.stderr.isatty())
    except tegula.Error as error:
        print(f"load: {error}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return 1
    print("shape", *array.shape)
    for box, view in array.tiles:
        print("rows", box[0].start, "to", box[0].stop, "sum to", view.sum(dtype="f8"))
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: load.py PATH")
    sys.exit(main(sys.argv[1]))
