# What Legate's own tests expect of legate.io.hdf5 (26.6), of both.
# SPDX-License-Identifier: Apache-2.0
#
# A case is an action with a module and a folder, and what must come of it: an array by numpy, or
# the exception that a program catches. Ours must do as it says in every case, theirs in all but
# those of DIFFERENT. Texts of messages are not compared: ours are those of docs/errors.md.
import itertools
import math

import h5py
import numpy
import tegula.legate as ours
from legate.core import (
    Field,
    LogicalArray,
    ParallelPolicy,
    Scope,
    StreamingMode,
    Table,
    get_legate_runtime,
)
from legate.core import types as ty
from legate.io import hdf5 as theirs

LATER = "theirs are written when the scope ends"
DIFFERENT = {
    "complex64": "theirs refuse complex numbers",
    "complex128": "theirs refuse complex numbers",
    "the file is there when to_file returns in a relaxed scope": LATER,
    "a number of the scope is in the file before a relaxed scope ends": LATER,
}

# and chunks, or pieces
SHAPES = {
    (2,): (2,),
    (5,): (2,),
    (4, 2): (2, 2),
    (2, 4): (2, 2),
    (2, 3): (2, 2),
    (5, 4, 3, 2): (2, 2, 2, 2),
}
runtime = get_legate_runtime()


def numbers(shape, dtype):
    return numpy.arange(math.prod(shape)).astype(dtype).reshape(shape)


def file_of(folder, data, name="dataset", **how):
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset(name, data=data, **how)
    return folder / "x.h5"


def seen(array):
    assert isinstance(array, LogicalArray), type(array)
    return numpy.array(array.get_physical_array())


def by_h5py(path, name="foo"):
    runtime.issue_execution_fence(block=True)
    with h5py.File(path) as file:
        return file[name][()]


def outcome(action, module, folder, number):
    place = folder / f"{module.__name__}_{number}"
    place.mkdir()
    try:
        return action(module, place)
    except Exception as error:
        return error


def is_as(expected, found):
    if isinstance(expected, type):
        return isinstance(found, expected)
    return (
        isinstance(found, numpy.ndarray)
        and (found.dtype, found.shape) == (expected.dtype, expected.shape)
        and numpy.array_equal(found, expected)
    )


def hold(cases, folder, different=DIFFERENT):
    """`cases`: name -> (expected, action)."""
    for number, (name, (expected, action)) in enumerate(cases.items()):
        mine, other = (outcome(action, module, folder, number) for module in (ours, theirs))
        assert is_as(expected, mine), (name, expected, mine)
        assert is_as(expected, other) == (name not in different), (name, expected, other)
    return len(cases)


def read(data, name="dataset", asked=None, **how):
    return lambda module, folder: seen(
        module.from_file(file_of(folder, data, name, **how), dataset_name=asked or name)
    )


def check_arrays_are_read(files, scratch):
    cases = {
        f"{shape} {dtype}": (numbers(shape, dtype), read(numbers(shape, dtype), chunks=chunks))
        for (shape, chunks), dtype in itertools.product(SHAPES.items(), ("u1", "u8", "f8"))
    }
    assert hold(cases, scratch) == 18


def check_scalars_and_groups_are_read(files, scratch):
    data = numbers((1, 10), "i4")
    hold(
        {
            "scalar": (numpy.array([42]), read(numpy.array(42))),
            "in a group": (data, read(data, "root/dataset")),
            "a group": (ValueError, read(data, "root/dataset", "root")),
            "no such dataset": (ValueError, read(data, "root/dataset", "other")),
            "no such file": (
                RuntimeError,
                lambda module, folder: module.from_file(folder / "none.h5", "x"),
            ),
        },
        scratch,
    )


def check_virtual_datasets_are_read(files, scratch):
    data = numbers((1, 10), "i4")

    def action(module, folder):
        layout = h5py.VirtualLayout(shape=data.shape, dtype=data.dtype)
        layout[0] = h5py.VirtualSource(file_of(folder, data), "dataset", shape=data.shape)
        with h5py.File(folder / "virtual.h5", "w") as file:
            file.create_group("root").create_virtual_dataset("virtual-dataset", layout)
        return seen(module.from_file(folder / "virtual.h5", "root/virtual-dataset"))

    hold({"virtual": (data, action)}, scratch)


def check_complex_numbers(files, scratch):
    hold(
        {
            dtype: (numbers((2, 5), dtype), read(numbers((2, 5), dtype)))
            for dtype in ("complex64", "complex128")
        },
        scratch,
    )


def check_batches(files, scratch):
    def walk(data, chunk, kind):
        def action(module, folder):
            found = numpy.zeros_like(data)
            for piece, origin in module.from_file_batched(
                file_of(folder, data, "foo"), "foo", chunk
            ):
                part = seen(piece)
                place = tuple(slice(low, low + length) for low, length in zip(origin, chunk))
                assert (
                    piece.type == kind
                    and part.dtype == data.dtype
                    and part.shape == found[place].shape
                )
                found[place] = part
            return found

        return action

    kinds = (ty.int8, ty.uint16, ty.int32, ty.float64, ty.float32, ty.uint64)
    cases = {}
    for (shape, chunk), kind in itertools.product(SHAPES.items(), kinds):
        data = numbers(shape, kind.to_numpy_dtype()) + 1
        cases[f"{shape} {chunk} {kind}"] = data, walk(data, chunk, kind)
    assert hold(cases, scratch) == 36


def check_sizes_that_are_none(files, scratch):
    data = numpy.ones((2, 2, 2))

    def step(chunk):
        return lambda module, folder: next(
            module.from_file_batched(file_of(folder, data, "foo"), "foo", chunk)
        )

    hold(
        {str(chunk): (ValueError, step(chunk)) for chunk in ((0, 1, 2), (-1, 2, 3), (2, 2))},
        scratch,
    )
    for module in (ours, theirs):
        # what is wrong is raised by the first step
        module.from_file_batched("no file", "foo", (0, 1, 2))


def written(mode, shape, kind, wrapped=False, value=1):
    """The array exists in the scope only."""

    def action(module, folder):
        with Scope(parallel_policy=ParallelPolicy(streaming_mode=mode, overdecompose_factor=8)):
            array = runtime.create_array(dtype=kind, shape=shape)
            runtime.issue_fill(array, value)
            if wrapped:
                module.to_file(
                    Table([Field("foo", dtype=kind)], [array]),
                    path=folder / "x.h5",
                    dataset_name="foo",
                )
            else:
                module.to_file(array=array, path=folder / "x.h5", dataset_name="foo")
            del array
        return by_h5py(folder / "x.h5")

    return action


def check_arrays_are_written_in_scopes(files, scratch):
    for mode in StreamingMode:
        cases = {
            f"{shape} {kind}": (
                numpy.ones(shape, kind.to_numpy_dtype()),
                written(mode, shape, kind),
            )
            for shape, kind in itertools.product(
                ((1,), (2, 2), (3, 4, 5)), (ty.int32, ty.int16, ty.float32, ty.float16)
            )
        }
        (scratch / mode.name).mkdir()
        assert hold(cases, scratch / mode.name) == 12


def check_what_has_a_data_interface_is_written_in_scopes(files, scratch):
    for mode in StreamingMode:
        cases = {
            str(shape): (numpy.ones(shape, "i8"), written(mode, shape, ty.int64, wrapped=True))
            for shape in ((1,), (2, 2), (3, 4, 5))
        }
        (scratch / mode.name).mkdir()
        assert hold(cases, scratch / mode.name) == 3


def check_arrays_are_read_in_scopes(files, scratch):
    """Legate ends a process that makes arrays of several sizes in a strict scope,
    or walks over a file in one."""

    def read_in(mode, data):
        def action(module, folder):
            path = file_of(folder, data)
            with Scope(parallel_policy=ParallelPolicy(streaming_mode=mode, overdecompose_factor=8)):
                found = module.from_file(path, "dataset")
            return seen(found)

        return action

    for mode in StreamingMode:
        (scratch / mode.name).mkdir()
        hold(
            {
                f"{shape} {dtype}": (numbers(shape, dtype), read_in(mode, numbers(shape, dtype)))
                for shape, dtype in itertools.product(SHAPES, ("u1", "u8", "f8"))
            },
            scratch / mode.name,
        )


def check_errors_in_scopes(files, scratch):
    def failing(mode, call):
        def action(module, folder):
            with Scope(parallel_policy=ParallelPolicy(streaming_mode=mode)):
                try:
                    call(module, folder)
                except Exception as error:
                    return error
            return None

        return action

    def to_a_folder(module, folder):
        array = runtime.create_array(dtype=ty.int64, shape=(2,))
        runtime.issue_fill(array, 1)
        module.to_file(array, folder, "foo")

    for mode in StreamingMode:
        (scratch / mode.name).mkdir()
        hold(
            {
                "no such file": (
                    RuntimeError,
                    failing(mode, lambda module, folder: module.from_file(folder / "none.h5", "x")),
                ),
                "no such dataset": (
                    ValueError,
                    failing(
                        mode, lambda module, folder: module.from_file(file_of(folder, [1]), "x")
                    ),
                ),
                "pieces of nothing": (
                    ValueError,
                    failing(
                        mode, lambda module, folder: next(module.from_file_batched("x", "x", (0,)))
                    ),
                ),
                "to a folder": (ValueError, failing(mode, to_a_folder)),
            },
            scratch / mode.name,
        )


def check_when_files_are_written_in_a_relaxed_scope(files, scratch):
    def there(look):
        def action(module, folder):
            with Scope(
                parallel_policy=ParallelPolicy(
                    streaming_mode=StreamingMode.RELAXED, overdecompose_factor=8
                )
            ):
                array = runtime.create_array(dtype=ty.int64, shape=(3, 4))
                runtime.issue_fill(array, 7)
                module.to_file(array, folder / "x.h5", "foo")
                found = look(folder / "x.h5")
            by_h5py(folder / "x.h5")
            return numpy.array(found)

        return action

    def first(path):
        if not path.exists():
            return numpy.int64(0)
        with h5py.File(path) as file:
            return file["foo"][0, 0]

    hold(
        {
            "the file is there when to_file returns in a relaxed scope": (
                numpy.array(True),
                there(lambda path: path.exists()),
            ),
            "a number of the scope is in the file before a relaxed scope ends": (
                numpy.array(7),
                there(first),
            ),
        },
        scratch,
    )
