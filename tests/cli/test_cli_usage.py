# The command line itself: help, version, options and their values, exit status 2,
# closed standard output.
#
# SPDX-License-Identifier: Apache-2.0
#
# None of these runs gets as far as reading a file.
import os
import subprocess

import pytest

from command import BIN, environment, report, tegula, usage_error

COMMANDS = [
    "demo",
    "write",
    "load",
    "info",
    "copy",
    "plan",
    "verify",
    "compare",
    "clean",
    "bench",
    "run",
]


def test_help_names_every_command():
    run = tegula("--help")
    assert run.returncode == 0 and run.stderr == ""
    for command in COMMANDS:
        assert "\n  %s " % command in run.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_is_complete(command):
    run = tegula(command, "--help")
    assert run.returncode == 0 and run.stderr == ""
    assert run.stdout.startswith("Usage: tegula %s" % command)
    for option in (
        "--json",
        "--threads N",
        "--quiet",
        "-v",
        "--progress auto|always|never",
        "--timeout SECONDS",
    ):
        assert option in run.stdout
    examples = run.stdout.split("Examples:\n")[1]
    assert "  tegula %s" % command in examples
    assert "130 interrupted" in run.stdout


def test_help_of_load_lists_its_options():
    text = tegula("load", "--help").stdout
    for option in (
        "dataset format tiles axis tile-shape overdecompose box check-seed hash repeat "
        "expect-files expect-rows "
        "as-given allow-locked missing dtype shape row-shape offset order byte-order row-gap"
    ).split():
        assert "  --%s" % option in text


def test_version():
    run = tegula("--version")
    assert run.returncode == 0 and run.stdout == "tegula 0.1.0\n"


def test_no_command():
    run = tegula()
    assert run.returncode == 2 and run.stdout == ""
    assert run.stderr == "tegula: expected a command\nhint: see tegula --help\n"


def test_unknown_command_suggests_the_nearest():
    error = usage_error("laod", "x", says=['"laod"'])
    assert "tegula load" in error["hint"]
    assert usage_error("frobnicate", says=['"frobnicate"'])["hint"] == "see tegula --help"


def test_unknown_option_suggests_the_nearest():
    assert "--tiles" in usage_error("load", "x", "--tiels", "3", says=["--tiels"])["hint"]
    assert "--row-shape" in usage_error("load", "x", "--row_shape=3", says=["--row_shape"])["hint"]
    assert (
        usage_error("load", "x", "--zzzzzzzzzzzz", says=["--zzzzzzzzzzzz"])["hint"]
        == "see tegula load --help"
    )
    usage_error("load", "x", "-z", says=["-z"])


@pytest.mark.parametrize("option", ["--device", "--gds", "--columns", "--null-value", "--promote"])
def test_options_of_later_versions_are_not_swallowed(option):
    usage_error("load", "x", option, "error", says=[option])


BAD_VALUES = [
    (
        "load",
        "--tiles",
        [
            "",
            "0",
            "-1",
            "+1",
            " 1",
            "1 ",
            "1.5",
            "1e3",
            "0x10",
            "abc",
            "9223372036854775808",
            "9" * 20,
        ],
    ),
    ("load", "--axis", ["", "-1", "64", "x"]),
    ("load", "--threads", ["", "0", "-2", "4097", "two"]),
    ("load", "--timeout", ["", "0", "-1", "1e3", "inf", "nan", "1s", ".", "1.2.3", "1000000001"]),
    ("load", "--progress", ["", "sometimes", "auto|always", "Auto"]),
    (
        "load",
        "--tile-shape",
        ["", ",", "1,", ",1", "1,,2", "0,1", "1;2", "-1,2", "9223372036854775808"],
    ),
    (
        "load",
        "--box",
        [
            "",
            "5",
            "1:2:0",
            "::-1",
            "1:2:x",
            "1:2:3:4",
            "5:1",
            "-3:4",
            "0:3,",
            "0:3,,",
            "a:b",
            "0:99999999999999999999",
            "[0:1]",
        ],
    ),
    ("load", "--shape", ["", "(3)", "-1", "3x4", "1," * 64 + "1"]),
    ("load", "--dtype", ["", "f5", "float", "<", "O", "S0"]),
    ("load", "--offset", ["", "-1", "1k", "9223372036854775808"]),
    ("load", "--order", ["", "c", "CF", "K"]),
    ("load", "--byte-order", ["", "native", "=", "middle"]),
    ("load", "--format", ["", "zarr", "NPY", "npy|raw"]),
    ("load", "--repeat", ["", "0", "-1", "1000001"]),
    ("load", "--expect-files", ["", "-1", "eight"]),
    ("load", "--expect-rows", ["", "-1", "9223372036854775808"]),
    ("load", "--check-seed", ["", "-1", "0x1"]),
    ("load", "--dataset", [""]),
    ("load", "--missing", ["", "ignore", "Error"]),
    ("plan", "--ranks", ["", "0", "-1", "1000001"]),
    ("copy", "--memory", ["", "0", "1023K", "-1", "1.5M", "64MB", "M", "64 M", "9999999T"]),
    ("copy", "--chunks", ["", "0,1", "1,"]),
    ("copy", "--layout", ["", "tiled"]),
    ("copy", "--shards", ["", "0", "1000001"]),
    ("verify", "--level", ["", "size", "all"]),
    ("write", "--num-shards", ["", "0", "-1", "1000001"]),
    ("write", "--seed", ["", "-1", "9223372036854775808"]),
    ("write", "--values", ["", "zeros"]),
]


@pytest.mark.parametrize(
    "command,option,value", [(c, o, v) for c, o, values in BAD_VALUES for v in values]
)
def test_wrong_value_names_option_and_value(tmp_path, command, option, value):
    target = tmp_path / "target"
    usage_error(command, target, option, value, says=[option, '"%s"' % value])
    usage_error(command, "%s=%s" % (option, value), target, says=[option, '"%s"' % value])
    assert not target.exists()


def test_value_is_missing():
    run = tegula("load", "x", "--tiles")
    assert run.returncode == 2 and run.stderr.startswith(
        "tegula: option --tiles needs a value (N)\n"
    )


def test_flag_takes_no_value():
    usage_error("load", "x", "--hash=yes", says=["--hash", '"yes"'])


def test_number_of_paths():
    usage_error("load", says=["load needs PATH"])
    usage_error("info", "a", "b", says=["one path", '"b"'])
    usage_error("demo", "a", says=["no path", '"a"'])
    usage_error("clean", says=["DIR"])
    usage_error("compare", "a", says=["compare needs A B", "one path"])
    usage_error("compare", "a", "b", "c", says=["two paths", '"c"'])
    usage_error("load", "", says=["path 1 is empty"])
    usage_error("load", "a", "", says=["path 2 is empty"])


def test_options_that_exclude_each_other():
    usage_error("load", "x", "--tile-shape", "2", "--tiles", "2", says=["--tile-shape", "--tiles"])
    usage_error("load", "x", "--tile-shape", "2", "--axis", "0", says=["--tile-shape", "--axis"])
    usage_error(
        "load",
        "x",
        "--tile-shape",
        "2",
        "--overdecompose",
        "2",
        says=["--tile-shape", "--overdecompose"],
    )
    usage_error(
        "load",
        "x",
        "--dtype",
        "f4",
        "--shape",
        "2",
        "--row-shape",
        "2",
        says=["--shape", "--row-shape"],
    )
    usage_error("load", "x", "--format", "npy", "--row-gap", "2", says=["--row-gap", "npy"])


def test_byte_order_said_twice_and_differently(tmp_path):
    (tmp_path / "a.raw").write_bytes(bytes(8))
    raw = ["load", tmp_path / "a.raw", "--format", "raw", "--row-shape", 2]
    usage_error(*raw, "--dtype", ">f4", "--byte-order", "little")
    usage_error(*raw, "--dtype", "<f4", "--byte-order", "big")
    for options in (
        ["--dtype", ">f4", "--byte-order", "big"],
        ["--dtype", ">f4"],
        ["--dtype", "f4", "--byte-order", "little"],
    ):
        report(*raw, *options)


def test_usage_error_without_json_prints_no_object():
    run = tegula("load", "x", "--tiles", "0")
    assert run.returncode == 2 and run.stdout == ""
    assert run.stderr.splitlines()[1] == "hint: see tegula load --help"


def test_json_after_two_hyphens_is_a_path():
    run = tegula("info", "--", "--json", "more")
    assert run.returncode == 2 and run.stdout == ""


def test_environment_is_checked_by_name():
    usage_error("load", "x", env={"TEGULA_THREADS": "many"}, says=["TEGULA_THREADS", '"many"'])
    usage_error("load", "x", env={"TEGULA_THREADS": ""}, says=["TEGULA_THREADS"])
    usage_error("load", "x", env={"TEGULA_TIMEOUT": "-1"}, says=["TEGULA_TIMEOUT", '"-1"'])


def test_an_option_wins_over_the_environment(tmp_path):
    error = report(
        "load", tmp_path / "gone", "--threads", "2", env={"TEGULA_THREADS": "many"}, status=1
    )["error"]
    assert error["status"] == "not_found"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["load", "--help"]])
def test_closed_standard_output_is_an_error(arguments):
    with open("/dev/full", "w") as full:
        run = tegula(*arguments, stdout=full)
    assert run.returncode == 1
    assert run.stderr == "tegula: could not write to standard output: No space left on device\n"
    closed = ["sh", "-c", 'exec "$0" "$@" >&-', BIN, *arguments]
    run = subprocess.run(closed, env=environment(), stderr=subprocess.PIPE, text=True)
    assert run.returncode == 1 and "could not write to standard output" in run.stderr


def test_closed_pipe_is_an_error():
    reader, writer = os.pipe()
    os.close(reader)
    run = tegula("load", "--help", stdout=writer)
    os.close(writer)
    assert run.returncode == 1 and "could not write to standard output: Broken pipe" in run.stderr
