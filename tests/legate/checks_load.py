# tegula.legate.load on whatever processors the configuration gives.
# SPDX-License-Identifier: Apache-2.0
import gc
import os
import shutil
import weakref

import cupynumeric
import numpy
import tegula
import tegula.legate
from legate.core import (
    ExceptionMode,
    LogicalArray,
    Scope,
    TaskTarget,
    VariantCode,
    VariantOptions,
    get_legate_runtime,
)
from legate.core import types as ty
from legate.core.task import OutputStore, task
from tegula.legate import _tasks

from harness import Skip


def seen(array):
    assert isinstance(array, LogicalArray), type(array)
    return numpy.asarray(cupynumeric.asarray(array))


def same(array, expected):
    found = seen(array)
    assert (
        found.dtype == expected.dtype
        and found.shape == expected.shape
        and numpy.array_equal(found, expected)
    )


def rows(files):
    return numpy.load(files / "rows.npy")


def check_uneven_shards(files, scratch):
    for overdecompose in (1, 8):
        same(tegula.legate.load(files / "uneven", overdecompose=overdecompose), rows(files))


def check_datasets_that_a_pattern_matches(files, scratch):
    for tiles in (None, 5):
        same(tegula.legate.load(files / "many.h5", "/shard_*", tiles=tiles), rows(files))


def check_more_tiles_than_rows(files, scratch):
    same(tegula.legate.load(files / "uneven", tiles=333), rows(files))
    # one row, and perhaps several processors
    first = tegula.legate.load(files / "uneven/part_0.npy")
    same(first, rows(files)[:1])


def check_tiles_of_both_axes(files, scratch):
    for tile in ((33, 3), (1, 7), (200, 1), (199, 5)):
        same(tegula.legate.load(files / "uneven", tile_shape=tile), rows(files))
    same(tegula.legate.load(files / "uneven", tiles=3, axis=-1), rows(files))


def check_byte_order_and_fortran_order(files, scratch):
    same(tegula.legate.load(files / "big_endian"), rows(files))
    same(tegula.legate.load(files / "fortran"), rows(files))


def check_raw_files(files, scratch):
    rows(files).astype(">f8").tofile(scratch / "x.bin")
    same(
        tegula.legate.load(scratch / "x.bin", dtype=">f8", row_shape=(7,)), rows(files).astype("f8")
    )


def check_an_open_dataset(files, scratch):
    dataset = tegula.legate.open(files / "uneven")
    same(tegula.legate.load(dataset), rows(files))
    same(tegula.legate.load(dataset, tiles=2), rows(files))


def check_selections(files, scratch):
    whole = rows(files)
    ds = tegula.open(files / "uneven")
    same(tegula.legate.load(ds.select(numpy.s_[3::7]), tiles=3), whole[3::7])
    table = numpy.zeros((90, 4), [("a", "<i4"), ("p", [("x", ">f8"), ("y", "<f4", (2,))])])
    table["p"]["y"] = numpy.arange(720).reshape(90, 4, 2)
    numpy.save(scratch / "table.npy", table)
    same(tegula.legate.load(scratch / "table.npy", field="p.y", tiles=4), table["p"]["y"].copy())
    part = tegula.open(scratch / "table.npy").select(numpy.s_[::5, 1:], field="p.y")
    same(tegula.legate.load(part), table["p"]["y"][::5, 1:].copy())


def check_readers(files, scratch):
    """Of this process also functions that cannot be pickled; what they raise is the cause."""
    dataset = tegula.open(files / "uneven")
    reader = tegula.from_reader(
        lambda box, out: dataset.read(box, out=out), dataset.shape, dataset.dtype
    )
    same(tegula.legate.load(reader, tiles=6), rows(files))
    with Scope(exception_mode=ExceptionMode.DEFERRED):
        array = tegula.legate.load(
            tegula.from_reader(
                lambda box, out: dataset.read(box, out=out), dataset.shape, dataset.dtype
            )
        )
    same(array, rows(files))

    same(
        tegula.legate.load(tegula.from_reader(lambda box, out: out.fill(4), (), "i2")),
        numpy.array(4, "i2"),
    )

    def broken(box, out):
        raise ZeroDivisionError("here")

    try:
        tegula.legate.load(tegula.from_reader(broken, (4,), "f4"))
    except tegula.Error as error:
        assert isinstance(error.__cause__, ZeroDivisionError) and "here" in str(error)
    else:
        raise AssertionError("no error")
    assert not _tasks.datasets.lent and not _tasks.datasets.kept and not _tasks.causes


def check_a_manifest_that_is_too_long(files, scratch):
    """Tasks of this process use the open dataset; nothing is described again."""
    before, tegula._dataset._JSON_MOST = tegula._dataset._JSON_MOST, 100
    opened = _tasks.datasets.opened
    try:
        same(tegula.legate.load(files / "uneven", tiles=5), rows(files))
    finally:
        tegula._dataset._JSON_MOST = before
    assert _tasks.datasets.opened == opened and not _tasks.datasets.lent


@task(options=VariantOptions(may_throw_exception=True))
def within(out: OutputStore, folder: bytes) -> None:
    # numpy arrays may be loaded in tasks, those of Legate not
    numpy.asarray(out)[...] = tegula.load(folder).local
    tegula.legate.load(folder)


def check_in_a_task(files, scratch):
    runtime = get_legate_runtime()
    store = runtime.create_store(ty.float32, rows(files).shape)
    job = runtime.create_manual_task(within.library, within.task_id, (1,))
    job.add_output(store)
    job.add_scalar_arg(numpy.frombuffer(str(files / "uneven").encode(), "u1"), (ty.uint8,))
    job.throws_exception(Exception)
    try:
        runtime.submit(job)
    except RuntimeError as error:
        assert "use tegula.load" in str(error)
    else:
        raise AssertionError("no error")
    same(LogicalArray.from_store(store), rows(files))


def check_threads_of_a_task(files, scratch):
    """One, and in a group of cores as many as that has; the wheel of Legate has no such groups."""

    class Pretended:
        def __init__(self, kind):
            self.get_variant_kind = lambda: kind
            self.num_omp_threads = 6
            self.config = lambda: self

    real = _tasks.get_legate_runtime
    try:
        for kind, threads in ((VariantCode.CPU, 1), (VariantCode.OMP, 6)):
            _tasks.get_legate_runtime = lambda kind=kind: Pretended(kind)
            assert _tasks.threads_of(Pretended(kind)) == threads
    finally:
        _tasks.get_legate_runtime = real


def check_no_copy_for_cupynumeric(files, scratch):
    array = tegula.legate.load(files / "uneven")
    seen(array)
    view = cupynumeric.asarray(array)
    view[3, 2] = -5  # what cuPyNumeric writes is seen in the array: there is one store
    get_legate_runtime().issue_execution_fence(block=True)
    assert seen(array)[3, 2] == -5


def check_each_task_opens_once_and_nothing_stays(files, scratch):
    before = _tasks.datasets.opened
    tegula.legate.load(files / "uneven", tiles=20)
    assert _tasks.datasets.opened == before + 1 and not _tasks.datasets.kept


def check_as_many_tasks_as_processors(files, scratch):
    count = get_legate_runtime().get_machine().count(TaskTarget.CPU)
    dataset, rows_of = tegula.open(files / "uneven"), []
    reader = tegula.from_reader(
        lambda box, out: rows_of.append(box[0]) or dataset.read(box, out=out),
        dataset.shape,
        dataset.dtype,
    )
    for tiles in (count, 3 * count):
        rows_of.clear()
        same(tegula.legate.load(reader, overdecompose=tiles // count), rows(files))
        height = -(-200 // tiles)
        assert {box.start // height for box in rows_of} == set(range(-(-200 // height))), rows_of
        # no read crosses a border of tiles
        assert all(box.start // height == (box.stop - 1) // height for box in rows_of)


def check_a_shard_that_got_short(files, scratch):
    shutil.copytree(files / "uneven", scratch / "s")
    dataset = tegula.open(scratch / "s")
    with open(scratch / "s/part_3.npy", "r+b") as file:
        file.truncate(300)
    try:
        tegula.legate.load(dataset)
    except (tegula.ShortFileError, tegula.ChangedError) as error:
        assert "part_3.npy" in str(error) and error.path.endswith("part_3.npy"), error
    else:
        raise AssertionError("no error")
    same(tegula.legate.load(files / "uneven"), rows(files))


def check_a_shard_that_is_gone(files, scratch):
    shutil.copytree(files / "uneven", scratch / "s")
    dataset = tegula.open(scratch / "s")
    (scratch / "s/part_5.npy").unlink()
    try:
        tegula.legate.load(dataset, tiles=7)
    except tegula.NotFoundError as error:
        assert isinstance(error, FileNotFoundError) and error.path.endswith("part_5.npy"), error
    else:
        raise AssertionError("no error")
    same(tegula.legate.load(files / "uneven"), rows(files))


def check_short_when_it_is_described(files, scratch):
    shutil.copytree(files / "uneven", scratch / "s")
    with open(scratch / "s/part_3.npy", "r+b") as file:
        file.truncate(300)
    try:
        tegula.legate.load(scratch / "s")
    except tegula.ShortFileError as error:
        assert "part_3.npy" in str(error)
    else:
        raise AssertionError("no error")


def check_damage_that_only_a_task_meets(files, scratch):
    for _ in range(3):
        try:
            tegula.legate.load(files / "damaged.h5", tiles=10)
        except tegula.CorruptError as error:
            assert (
                error.path.endswith("damaged.h5") and "damaged.h5" in str(error) and error.offset
            ), error
        else:
            raise AssertionError("no error")
    same(tegula.legate.load(files / "uneven"), rows(files))


def check_errors_with_long_names(files, scratch):
    """An exception that is too long for Legate ends the process."""
    for parts in (4, 14):  # the library's own fields end at 1024 bytes
        deep = scratch.joinpath(*["é" * 120] * parts)
        deep.mkdir(parents=True, exist_ok=True)
        shutil.copy(files / "damaged.h5", deep / "damaged.h5")
        try:
            tegula.legate.load(deep / "damaged.h5")
        except tegula.CorruptError as error:
            assert str(error).startswith("could not decode the chunk at (120, 0)"), error
            assert parts > 4 or error.path == str(deep / "damaged.h5"), error.path
        else:
            raise AssertionError("no error")


def collect(box, out):
    gc.collect()
    out[...] = box[0].start


def check_names_that_are_no_text(files, scratch):
    folder = os.fsencode(scratch) + b"/\xff\xfe"
    os.mkdir(folder)
    shutil.copy(files / "damaged.h5", folder + b"/damaged.h5")
    shutil.copy(files / "plain.h5", folder + b"/plain.h5")
    same(tegula.legate.load(folder + b"/plain.h5", "rows"), rows(files))
    try:
        tegula.legate.load(folder + b"/damaged.h5")
    except tegula.CorruptError as error:
        assert os.fsencode(error.path) == folder + b"/damaged.h5", error.path
    else:
        raise AssertionError("no error")
    array = cupynumeric.arange(5)
    tegula.legate.save(array, folder + b"/x.npy")
    assert numpy.load(os.fsdecode(folder + b"/x.npy")).tolist() == [0, 1, 2, 3, 4]
    try:
        tegula.legate.save(array, folder + b"/x.npy")
    except tegula.ExistsError as error:
        assert os.fsencode(error.path) == folder + b"/x.npy"
    else:
        raise AssertionError("no error")


def check_garbage_is_not_collected_in_tasks(files, scratch):
    """An array of Legate that goes within a task ends the process."""
    gc.disable()
    try:
        cycle = [tegula.legate.load(files / "uneven")]
        cycle.append(cycle)
        gone = weakref.ref(Mark(cycle))
        del cycle
        same(
            tegula.legate.load(tegula.from_reader(collect, (4,), "i4"), tiles=4),
            numpy.arange(4, dtype="i4"),
        )
        assert gone() is not None
    finally:
        gc.enable()
    gc.collect()
    assert gone() is None


class Mark:
    """Garbage together with the cycle."""

    def __init__(self, cycle):
        cycle.append(self)


def check_a_deferred_scope_raises_at_its_end(files, scratch):
    at = []
    try:
        with Scope(exception_mode=ExceptionMode.DEFERRED):
            tegula.legate.load(files / "damaged.h5")
            at.append("launched")
    except tegula.CorruptError:
        at.append("raised")
    assert at == ["launched", "raised"], at
    with Scope(exception_mode=ExceptionMode.DEFERRED):
        array = tegula.legate.load(files / "uneven")
    same(array, rows(files))


def check_a_scope_cannot_ignore_failures(files, scratch):
    with Scope(exception_mode=ExceptionMode.IGNORED):
        try:
            tegula.legate.load(files / "damaged.h5")
        except tegula.CorruptError:
            pass
        else:
            raise AssertionError("no error")
        same(tegula.legate.load(files / "uneven"), rows(files))


def check_dtypes_that_legate_has_not(files, scratch):
    numpy.save(scratch / "dates.npy", numpy.arange(3).astype("M8[s]"))
    numpy.save(scratch / "text.npy", numpy.array(["a", "bc"]))
    for name in ("dates.npy", "text.npy"):
        try:
            tegula.legate.load(scratch / name)
        except tegula.UnsupportedError as error:
            assert "dtype" in str(error) and error.path.endswith(name)
        else:
            raise AssertionError(name)


def check_wrong_arguments(files, scratch):
    for wrong in (
        {"tiles": 0},
        {"axis": 2},
        {"tiles": 2, "tile_shape": (3, 3)},
        {"tile_shape": (3,)},
        {"tile_shape": (0, 3)},
        {"overdecompose": 1.5},
    ):
        try:
            tegula.legate.load(files / "uneven", **wrong)
        except ValueError:
            continue
        raise AssertionError(wrong)


def check_memory_of_a_thousand_loads(files, scratch):
    if get_legate_runtime().get_machine().count(TaskTarget.CPU) != 2:
        raise Skip("measured with two processors")
    sizes = {}
    for i in range(1001):
        tegula.legate.load(files / "uneven/part_?.npy")
        if i in (100, 1000):
            with open("/proc/self/status", encoding="ascii") as status:
                sizes[i] = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    assert sizes[1000] - sizes[100] <= 1024, sizes
