"""Eight threads do all that the package offers, on shared and on own objects; test_processes.py
runs it in a build with ThreadSanitizer.

SPDX-License-Identifier: Apache-2.0
"""

import pickle
import sys
import threading

import numpy as np
import tegula
from tegula.io import hdf5

ROWS, COLUMNS, THREADS, ROUNDS = 1000, 7, 8, 6


def prepare(folder):
    array = np.arange(ROWS * COLUMNS, dtype="f4").reshape(ROWS, COLUMNS)
    tegula.save(array, folder + "/shards", shards=5)
    tegula.save(
        array,
        folder + "/x.h5",
        "x",
        chunks=(100, 3),
        codec="shuffle,deflate:1",
        attrs={"unit": "m"},
    )
    fill = tegula.from_reader(
        lambda box, out: np.copyto(out, array[box]), array.shape, "f4", chunks=(200, 7)
    )
    return array, [tegula.open(folder + "/shards"), tegula.open(folder + "/x.h5", "x"), fill]


def same(found, expected):
    np.testing.assert_array_equal(found, expected)


def use(ds, array, k):
    same(ds[k * 10 : 900], array[k * 10 : 900])
    same(ds[k, 1:3], array[k, 1:3])
    same(ds[::3, ::-2], array[::3, ::-2])
    out = np.empty((COLUMNS, ROWS), "f4").T
    same(tegula.load(ds, tiles=k + 1, out=out, progress=lambda done, total: None), array)
    assert ds.hash() == tegula.load(ds).hash()
    assert len(ds.attrs) < 2 and ds.explain(k + 1)["shape"] == [ROWS, COLUMNS]


def work(folder, array, datasets, k):
    own = f"{folder}/own{k}"
    for i in range(ROUNDS):
        for ds in datasets:
            use(ds, array, k)
        tegula.save(array[i:], own + ".npy", overwrite=True, block=False)
        tegula.save({"a": array, "b": array[i:]}, own + ".h5", overwrite=True)
        same(
            np.concatenate(
                [piece for piece, _ in hdf5.from_file_batched(own + ".h5", "a", (300, COLUMNS))]
            ),
            array,
        )
        tegula.fence()
        same(tegula.load(own + ".npy"), array[i:])
        same(pickle.loads(pickle.dumps(datasets[i % 2]))[5:9], array[5:9])
        try:
            tegula.open(folder + "/none")
        except tegula.NotFoundError as error:
            assert error.path == folder + "/none"


def main(folder):
    array, datasets = prepare(folder)
    done = []
    threads = [
        threading.Thread(target=lambda k=k: done.append(work(folder, array, datasets, k)))
        for k in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(len(done), "threads are done")


if __name__ == "__main__":
    main(sys.argv[1])
