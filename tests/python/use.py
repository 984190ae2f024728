"""A program as users write it, for mypy --strict; test_package.py runs it too.

SPDX-License-Identifier: Apache-2.0
"""

import pathlib
import sys

import numpy as np
import tegula
from tegula.io import hdf5


def halves(box: tuple[slice, ...], out: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
    out[...] = 0.5


def main(folder: pathlib.Path) -> str:
    data = np.arange(40.0).reshape(10, 4)
    tegula.save(data, folder / "x.npy")
    tegula.save(
        {"a": data, "b": data},
        folder / "x.h5",
        chunks=(2, 4),
        codec="shuffle",
        attrs={"a": {"unit": "m"}},
    )
    ds: tegula.Dataset = tegula.open([folder / "x.npy"], missing="strict", threads=2)
    shape: tuple[int, ...] = ds.shape
    a: tegula.Array = tegula.load(ds, tiles=2, progress=lambda done, total: None)
    for box, view in a.tiles:
        rows: slice = box[0]
        assert view.shape[0] == rows.stop - rows.start
    b = tegula.load(folder / "x.h5", "a", out=np.empty(shape), format="hdf5")
    same: bool = a.hash() == b.hash() == ds.hash()
    for piece, offset in hdf5.from_file_batched(folder / "x.h5", "b", (4, 4)):
        assert piece.shape[1] == 4 and offset[1] == 0
    tegula.save(np.asarray(a), folder / "y.npy", block=False)
    tegula.fence()
    reader = tegula.from_reader(halves, (3,), np.float64, "halves")
    try:
        tegula.open(folder / "none")
    except tegula.Error as error:
        path: str | None = error.path
        return f"{same} {error.status} {path is not None} {reader[:].sum()}"
    return ""


if __name__ == "__main__":
    print(main(pathlib.Path(sys.argv[1])))
