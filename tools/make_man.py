#!/usr/bin/env python3
"""Writes the man pages in scdoc's language from what `tegula --help` and
`tegula COMMAND --help` say.

SPDX-License-Identifier: Apache-2.0

usage: make_man.py TEGULA FOLDER. The help comes from the command's own tables, so pages, help and
parser say the same; a test fails when the pages in docs/man are not what this writes. Run it again
after a change of the help: make_man.py build/bin/tegula docs/man.
"""

import pathlib
import re
import subprocess
import sys

COMMENT = (
    "; SPDX-License-Identifier: Apache-2.0\n; made by tools/make_man.py from the command's help: "
    "change that\n"
)
STATUS = """# EXIT STATUS

0 done; 1 it failed; 2 wrong usage; 3 data differ or a check failed; 130 interrupted.
"""


def escape(text):
    """Text in which scdoc sees nothing but text."""
    text = re.sub(r"([\\*_])", r"\\\1", text)
    return re.sub(r"^([-#|\[\].;<`])", r"\\\1", text, flags=re.M)


def help_of(tegula, *words):
    return subprocess.run(
        [tegula, *words, "--help"], check=True, capture_output=True, text=True
    ).stdout


def commands(text):
    block = text.split("Commands:\n")[1].split("\n\n")[0]
    return [re.match(r"  (\S+)\s+(.*)", line).groups() for line in block.splitlines()]


def option(line):
    """One option of the help as an entry of a page."""
    left, text = re.match(r"  ((?:-\w, )?--\S+(?: \S+)?) +(.*)", line).groups()
    names, _, argument = (
        left.partition(" ") if not left.startswith("-h,") and left[2] != "," else (left, "", "")
    )
    shown = "*%s*" % names if not argument else "*%s* _%s_" % (names, escape(argument))
    return "%s\n\t%s\n" % (shown, escape(text))


def sections(text):
    """The blocks of a command's help: usage, description, (title, option lines) ..., examples."""
    usage, rest = text.split("\n\n", 1)
    rest, examples = rest.split("\nExamples:\n")
    examples = examples.split("\n\nExit status:")[0]
    pieces = re.split(r"\n(?=[A-Z][^\n]*:\n  (?:-\w, )?--)", rest)
    groups = [piece.rstrip("\n").split("\n") for piece in pieces[1:]]
    return (
        usage,
        pieces[0].strip("\n"),
        [(lines[0].rstrip(":"), lines[1:]) for lines in groups],
        examples,
    )


def command_page(name, summary, text):
    usage, description, groups, examples = sections(text)
    paths = usage.removeprefix("Usage: tegula %s" % name).removesuffix("[OPTIONS]").strip()
    page = [
        'tegula-%s(1) "tegula" "tegula"\n' % name,
        COMMENT,
        "# NAME\n",
        "tegula-%s - %s\n" % (name, escape(summary)),
        "# SYNOPSIS\n",
        "*tegula %s*%s [_OPTIONS_]\n" % (name, " _%s_" % escape(paths) if paths else ""),
        "# DESCRIPTION\n",
        escape(description) + "\n",
        "# OPTIONS\n",
    ]
    for title, lines in groups:
        page += ["## %s\n" % title] + [option(line) for line in lines]
    page += [
        "# EXAMPLES\n",
        "```\n%s\n```\n" % examples.rstrip("\n"),
        STATUS,
        "# SEE ALSO\n",
        "*tegula*(1)\n",
    ]
    return "\n".join(page)


def main_page(text, rows):
    summary, _, rest = text.partition("\n\n")
    examples = rest.split("\nExamples:\n")[1].split("\n\nEnvironment")[0]
    page = [
        'tegula(1) "tegula" "tegula"\n',
        COMMENT,
        "# NAME\n",
        "tegula - move big arrays between files and memory\n",
        "# SYNOPSIS\n",
        "*tegula* _COMMAND_ [_PATH_...] [_OPTIONS_]\n",
        "# DESCRIPTION\n",
        escape(summary) + "\n",
        "A PATH is a file, a folder of shards, or a quoted pattern. Each command has a page of its "
        "own.\n",
        "# COMMANDS\n",
    ]
    page += [
        "*%s*\n\t%s. See *tegula-%s*(1).\n" % (name, escape(text[0].upper() + text[1:]), name)
        for name, text in rows
    ]
    page += ["*completion* _bash|zsh_\n\tPrint the completion for a shell.\n"]
    page += [
        "# EXAMPLES\n",
        "```\n%s\n```\n" % examples.rstrip("\n"),
        "# ENVIRONMENT\n",
        "*TEGULA_THREADS*, *TEGULA_TIMEOUT*\n\tAs the options *--threads* and *--timeout*, which "
        "win over them.\n",
        "*TEGULA_HDF5_LIBRARY*, *TEGULA_MPI_LIBRARY*\n\tThe libhdf5 and the MPI to use.\n",
        "*TEGULA_PLUGIN_PATH*\n\tA folder where plugins are looked for first.\n",
        STATUS,
    ]
    return "\n".join(page)


def main(tegula, folder):
    text = help_of(tegula)
    rows = commands(text)
    pages = {"tegula.1.scd": main_page(text, rows)}
    pages |= {
        "tegula-%s.1.scd" % name: command_page(name, summary, help_of(tegula, name))
        for name, summary in rows
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages.items():
        (folder / name).write_text(page)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: make_man.py TEGULA FOLDER")
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
