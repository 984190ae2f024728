# Completion in bash and zsh, and the man pages: all made from the tables of options,
# so they say what the help says.
#
# SPDX-License-Identifier: Apache-2.0
#
# bash is asked as it would ask itself: with the words of a line and the place of the cursor.
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

from command import BIN, ROOT, tegula, usage_error

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
PAGES = ROOT / "docs" / "man"


def options_of(command):
    return re.findall(r"^  (?:-\w, )?(--[a-z-]+)", tegula(command, "--help").stdout, re.M)


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("completion") / "tegula.bash"
    path.write_text(tegula("completion", "bash").stdout)
    return path


def complete(script, *words):
    """What bash would offer for the last word; ...
    and whether it would offer file names when there is nothing."""
    line = (
        "source %s; compopt() { [ \"$*\" = '+o default' ] && echo no-files >&2; }; "
        "COMP_WORDS=(%s); COMP_CWORD=%d; _tegula; printf '%%s\\n' \"${COMPREPLY[@]}\""
    )
    text = line % (
        shlex.quote(str(script)),
        " ".join(map(shlex.quote, ("tegula", *words))),
        len(words),
    )
    run = subprocess.run(["bash", "--norc", "-c", text], capture_output=True, text=True, check=True)
    assert run.stderr in ("", "no-files\n"), run.stderr
    return run.stdout.split(), run.stderr == ""


def test_bash_offers_the_commands(script):
    assert complete(script, "")[0] == [*COMMANDS, "--help", "--version"]
    assert complete(script, "c") == (["copy", "compare", "clean"], False)
    assert complete(script, "x")[0] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_bash_offers_all_options_of_a_command(script, command):
    offered, _ = complete(script, command, "-")
    assert sorted(word for word in offered if word.startswith("--")) == sorted(options_of(command))
    assert [word for word in offered if not word.startswith("--")] == ["-q", "-v", "-h"]


def test_bash_offers_the_values_of_a_choice(script):
    assert complete(script, "load", "--progress", "")[0] == ["auto", "always", "never"]
    assert complete(script, "load", "x", "--progress", "al")[0] == ["always"]
    assert complete(script, "load", "--progress", "=")[0] == ["auto", "always", "never"]
    assert complete(script, "load", "--progress", "=", "n")[0] == ["never"]
    assert complete(script, "verify", "--level", "d")[0] == ["decode"]
    assert complete(script, "verify", "--ag")[0] == ["--against"]
    assert complete(script, "load", "--byte-order", "")[0] == ["little", "big"], (
        "< would be a redirection"
    )


def test_bash_offers_files_where_a_path_may_stand(script):
    assert complete(script, "load", "") == ([], True)
    assert complete(script, "compare", "a", "b") == ([], True)
    assert complete(script, "load", "--json", "sha") == ([], True)
    assert complete(script, "load", "--tiles", "") == ([], False), "a number is no file"


def test_bash_knows_where_to_use_it(script):
    text = "source %s; complete -p tegula" % shlex.quote(str(script))
    run = subprocess.run(["bash", "--norc", "-c", text], capture_output=True, text=True, check=True)
    assert run.stdout == "complete -o default -F _tegula tegula\n"


@pytest.fixture(scope="module")
def zsh():
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed")
    return ["zsh", "-f", "-c"]


def test_zsh_reads_the_script_and_knows_all_options(zsh, tmp_path):
    (tmp_path / "_tegula").write_text(tegula("completion", "zsh").stdout)
    show = (
        "compdef() { }; source %s; _describe() { print -rl -- ${(P)2%%%%:*} }; _arguments() { "
        'print -rl -- "$@" }; '
        "CURRENT=%d; words=(tegula %s ''); _tegula"
    )
    path = shlex.quote(str(tmp_path / "_tegula"))
    run = subprocess.run([*zsh, show % (path, 2, "")], capture_output=True, text=True, check=True)
    assert (run.stdout.split(), run.stderr) == (COMMANDS, "")
    for command in COMMANDS:
        run = subprocess.run(
            [*zsh, show % (path, 3, command)], capture_output=True, text=True, check=True
        )
        specs = run.stdout.splitlines()
        assert [
            re.match(r"--[a-z-]+", spec).group() for spec in specs if spec.startswith("--")
        ] == options_of(command)
        assert ("*:path:_files" in specs) == (command != "demo")
        assert any(
            spec.startswith("--progress=") and spec.endswith(":value:(auto always never)")
            for spec in specs
        )


def test_completion_of_another_shell(tmp_path):
    usage_error("completion", "fish", says=["bash and zsh", '"fish"'])
    assert "completion" not in tegula("--help").stdout.split("Options:")[0]


# ---- man pages -----------------------------------------------------------------------------------


def test_man_pages_say_what_the_help_says(tmp_path):
    """tools/make_man.py makes them from the help;
    after a change of the help it must be run again."""
    subprocess.run(["python3", ROOT / "tools" / "make_man.py", BIN, tmp_path], check=True)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text() for path in PAGES.iterdir()}
    assert sorted(made) == sorted(kept)
    for name in made:
        assert made[name] == kept[name], (
            "%s is not up to date: run tools/make_man.py %s docs/man" % (name, BIN)
        )


@pytest.mark.parametrize("command", COMMANDS)
def test_man_page_of_a_command_has_every_option(command):
    page = (PAGES / ("tegula-%s.1.scd" % command)).read_text()
    assert re.findall(r"^\*(?:-\w, )?(--[a-z-]+)\*", page, re.M) == options_of(command)
    assert "*tegula-%s*(1)" % command in (PAGES / "tegula.1.scd").read_text()


def test_scdoc_takes_the_pages():
    if not shutil.which("scdoc"):
        pytest.skip("scdoc is not installed")
    for path in sorted(PAGES.iterdir()):
        run = subprocess.run(["scdoc"], stdin=open(path), capture_output=True, text=True)
        assert run.returncode == 0 and run.stdout.startswith('.\\"'), (path, run.stderr)
        assert pathlib.Path(path).stem.removesuffix(".1") in run.stdout.replace("\\-", "-")
