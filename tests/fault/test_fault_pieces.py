# Every system call and every allocation fails once while a program walks over batches, reads from a
# function of its own, or has things checked: the right values or one clean error; after the error
# the walk goes on where it was.
#
# SPDX-License-Identifier: Apache-2.0
import numpy
import pytest

from faulty import CONTEXT, VALUES, each, first_error, harmless, plan, probe_run

LOAD = [
    {"do": "tiling", "kind": "even", "shape": [17, 6], "axis": 1, "tiles": 2},
    {"do": "array", "dtype": "<f4", "separate": True},
    {"do": "load"},
]


def pieced(boxes, dump):
    """The array that the pieces make, and how often each element came."""
    whole, times = numpy.zeros((17, 6), "f4"), numpy.zeros((17, 6), int)
    data, position = numpy.fromfile(dump, "f4"), 0
    for rows, columns in boxes:
        shape = (rows[1] - rows[0], columns[1] - columns[0])
        piece = data[position : position + shape[0] * shape[1]].reshape(shape)
        whole[rows[0] : rows[1], columns[0] : columns[1]] = piece
        times[rows[0] : rows[1], columns[0] : columns[1]] += 1
        position += piece.size
    assert position == data.size
    return whole, times


@pytest.mark.parametrize("chunk", [[5, 6], [4, 4]], ids=["rows", "grid"])
@pytest.mark.parametrize(
    "name", ["plain", "swapped", "fortran.npy", "plain.json", "sided", "function"]
)
def test_batches(name, chunk, inputs, tmp_path):
    """The piece that failed is the next one again, and in the end every element came once."""
    dataset = (
        {"do": "reader", "shape": [17, 6], "chunk": [3, 2]}
        if name == "function"
        else {"do": "open", "path": str(inputs / name)}
    )

    def run(number, fault=None):
        dump = tmp_path / ("dump%s" % number)
        begin, again = {"do": "batches", "chunk": chunk}, {"do": "batches"}
        got, answers, after = probe_run(
            tmp_path / ("report%s" % number),
            [begin],
            before=[CONTEXT, dataset],
            fault=fault,
            after=[again, {"do": "pieces", "path": str(dump)}],
        )
        return got, answers, after, dump

    def judge(got, answers, after, dump, goes_on):
        """The error, if there was one; nothing more can be expected when
        not even the walk began."""
        error = first_error(got, answers)
        if not goes_on:
            return error
        got.expect("boxes" in after[-1], "the walk did not go on after the error: %s" % after)
        whole, times = pieced(after[-1]["boxes"], dump)
        got.expect((times == 1).all(), "not every element once: %s" % after[-1]["boxes"])
        got.expect(numpy.array_equal(whole, VALUES), "wrong data")
        return error

    clean = run("clean")
    assert (
        judge(*clean, True) is None
        and len(clean[2][-1]["boxes"]) == {"[5, 6]": 4, "[4, 4]": 10}[str(chunk)]
    )

    def check(number, family, kind, fault):
        result = run(number, fault)
        error = judge(*result, result[1][1]["begun"])
        result[0].expect(
            error is None or not harmless(family, kind, True), "this is no reason to fail"
        )

    assert each(plan(clean[0].counted["calls"]), check) > 1


@pytest.mark.parametrize("chunk", [None, [4, 2]], ids=["any", "chunk"])
@pytest.mark.parametrize("fail_at", [0, 1, 3])
def test_dataset_from_a_function(fail_at, chunk, tmp_path):
    """Its own error arrives as it was set, unless another one came first; its state is let go of
    once for each dataset."""
    reader = {"do": "reader", "shape": [17, 6], "chunk": chunk, "fail_at": fail_at}

    def run(number, fault=None):
        dump = tmp_path / ("dump%s" % number)
        got, answers, after = probe_run(
            tmp_path / ("report%s" % number),
            [CONTEXT, reader, *LOAD, {"do": "hash"}],
            [{"do": "dump", "path": str(dump)}],
            fault=fault,
            after=[{"do": "close"}, {"do": "readers"}],
        )
        error = first_error(got, answers)
        got.expect(
            after[-1]["made"] == after[-1]["released"], "the state was let go of %s" % after[-1]
        )
        if error is None:
            right = numpy.concatenate([VALUES[:, :3].ravel(), VALUES[:, 3:].ravel()])
            got.expect(dump.read_bytes() == right.tobytes(), "wrong data")
        return got, error

    clean, error = run("clean")
    assert (error is None) == (fail_at == 0)
    told = "the probe was told to fail here"
    assert error is None or (
        told in error["message"] and error["status"] == "corrupt" and error["path"] == "the store"
    )

    def check(number, family, kind, fault):
        got, found = run(number, fault)
        got.expect(found is not None or error is None, "the function's own error was lost")
        own = found is not None and told in found["message"]
        got.expect(
            found is None or own or not harmless(family, kind, False), "this is no reason to fail"
        )

    assert each(plan(clean.counted["calls"]), check) > 1


CALLS = {
    "explain": [
        {"do": "tiling", "kind": "grid", "shape": [17, 6], "tile": [4, 2], "ranks": 3},
        {"do": "explain"},
    ],
    "verify": [{"do": "verify", "level": 2}],
    "compare": [{"do": "compare"}],
    "hash": [{"do": "hash"}],
    "to_json": [{"do": "to_json"}],
}


@pytest.mark.parametrize("first", ["plain", "fortran.npy", "plain.json", "sided"])
@pytest.mark.parametrize("name", CALLS)
def test_checks_through_the_interface(name, first, inputs, tmp_path):
    """The answer of a run without the fault, or an error; what verify found counts as one."""
    before = [
        CONTEXT,
        {"do": "open", "path": str(inputs / first)},
        {"do": "open", "path": str(inputs / "swapped"), "other": True},
    ]

    def run(number, fault=None):
        got, answers = probe_run(
            tmp_path / ("report%s" % number), CALLS[name], before=before, fault=fault
        )
        error = first_error(got, answers)
        answer = {key: value for key, value in answers[-2].items() if key != "statistics"}
        return got, answer, error

    clean, expected, error = run("clean")
    assert error is None
    assert name not in ("verify", "compare") or (
        expected.get("equal", True) and expected.get("problems", []) == []
    )

    def check(number, family, kind, fault):
        got, answer, error = run(number, fault)
        if error is None and name == "verify" and answer["problems"]:
            got.expect(
                answer["status"] == answer["problems"][0]["status"],
                "another status than the first problem's",
            )
            error = answer["problems"][0]
        got.expect(error is not None or answer == expected, "another answer than without the fault")
        got.expect(error is None or not harmless(family, kind, False), "this is no reason to fail")

    assert each(plan(clean.counted["calls"]), check) > 1
