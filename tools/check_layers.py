#!/usr/bin/env python3
"""Which folder may include which, which files may use each other, and who may call the system for
bytes: the tables of docs/design.md, enforced.

SPDX-License-Identifier: Apache-2.0

Prints FILE:LINE for every violation and exits 1 if there is one. Comments and texts in the sources
are not looked at. A folder under src/ that the table does not name is a violation: the table grows
on purpose, not by accident. Files may use what files of the same folders define, and no two files
may lead to each other, but for what CIRCLES names.
"""

import pathlib
import re
import sys

from source_symbols import SKIP, blank, circles, uses

# what the folders of whole operations stand on
MECHANISMS = {
    *("base", "manifest", "kernel", "memory", "comm", "io", "order", "codec", "format", "discover"),
    *("plan", "engine", "array"),
}
# folder under src/ -> folders it may include besides itself
LAYERS = {
    "base": set(),
    "manifest": {"base"},
    "kernel": {"base"},
    "memory": {"base"},
    "comm": {"base"},
    "io": {"base"},
    "order": {"base"},
    "codec": {"base", "kernel"},
    "format": {"base", "manifest", "codec"},
    "plugin": {"base", "manifest", "codec", "format"},
    "discover": {"base", "io", "manifest", "format"},
    "plan": {"base", "manifest"},
    "engine": {"base", "manifest", "plan", "io", "codec", "kernel", "memory"},
    "array": {"base", "memory"},
    "publish": {"base", "io"},
    "runtime": {"base", "comm", "io", "kernel", "memory", "engine", "order", "plugin", "array"},
    "dist": {
        *("base", "manifest", "comm", "memory", "array", "kernel", "codec", "plan", "engine"),
        "runtime",
    },
    "dataset": MECHANISMS | {"runtime", "dist"},
    "save": MECHANISMS | {"runtime", "dist", "dataset", "publish"},
    "verify": MECHANISMS | {"runtime", "dist", "dataset"},
    "copy": MECHANISMS | {"runtime", "dist", "dataset", "publish", "save", "verify"},
    "api": None,  # all of them
}
# rows of a table that lie above it: (file of the table, file of a row)
ROWS_ABOVE = {("src/format/registry.c", "src/plugin/hdf5_format.c")}
# circles of files that stay -> why
CIRCLES = {
    ("src/format/manifest_json/manifest_json.c", "src/format/registry.c"): "a table and its row: "
    "a manifest names the format of its files",
    ("cli/command_completion.c", "cli/command_run.c", "cli/main.c"): "a table and its rows: "
    "these commands show the commands of the table, or run one",
    (
        "plugins/hdf5/read/hdf5_dataset.c",
        "plugins/hdf5/read/vds_mappings.c",
        "plugins/hdf5/read/vds_sources.c",
    ): "recursion: a source of a virtual dataset is a dataset",
    (
        "plugins/hdf5/read/deferred_sources.c",
        "plugins/hdf5/read/describe_place.c",
        "plugins/hdf5/read/vds_description.c",
    ): "recursion: the description of a virtual dataset holds that of its sources",
}
# the same of the folders of a plugin
ROOMS = {
    "plugins/hdf5/library": set(),
    "plugins/hdf5/read": {"library"},
    "plugins/hdf5/write": {"library", "read"},
}
WITH_ROOMS = {room.rsplit("/", 1)[0] for room in ROOMS}
# these see the public header only
OUTSIDE = ("cli", "python", "examples", "bench", "tests/support", "plugins")
# whose files are linked together
PROGRAMS = ("src", "plugins/hdf5", "plugins/mpi", "cli", "python/core", "bench")
# but for these: what they run has no public name
LOOKING_IN = {"bench/decoder": {"codec"}, "tests/support/encoder": {"codec"}}
# library header -> where it may be included
LIBRARIES = {
    "jansson.h": ("src/base/", "cli/", "tests/"),
    "liburing.h": ("src/io/", "tests/unit/"),
    "xxhash.h": ("src/verify/", "src/codec/", "tests/"),
    "xxh_x86dispatch.h": ("src/verify/",),
    "cmocka.h": ("tests/unit/",),
    **dict.fromkeys(
        (
            "libdeflate.h",
            "zstd.h",
            "zstd_errors.h",
            "lz4.h",
            "blosc.h",
            "blosc2.h",
            "b2nd.h",
            "libaec.h",
        ),
        ("src/codec/",),
    ),
    "fuse.h": ("tests/support/",),
    "hdf5.h": ("nowhere: plugins declare what they call",),
}

# calls that move file content
BYTE_CALLS = """
    read pread pread64 preadv preadv2 readv write pwrite pwrite64 pwritev pwritev2 writev open
    open64 openat creat fopen fdopen fread fwrite fgets fputs getline mmap sendfile
    copy_file_range splice io_uring_setup io_uring_enter
""".split()
# calls that change names or wait for the disk
NAME_CALLS = """
    rename renameat renameat2 unlink unlinkat remove mkdir mkdirat rmdir link linkat
    symlink symlinkat fsync fdatasync syncfs
""".split()
# folder (or file) -> calls it may make; anything else from the two lists is a violation
ALLOWED = {
    "src/io/": set(BYTE_CALLS) | {"fsync", "fdatasync"},
    # open: folders, to sync them and to name files in them
    "src/publish/": set(NAME_CALLS) | {"open", "openat"},
    "src/memory/": {"mmap"},  # anonymous memory
    "plugins/hdf5/library/private_copy.c": {"open", "sendfile", "mmap"},  # copies libhdf5 itself
    "plugins/hdf5/library/memory_reserve.c": {"mmap"},  # anonymous memory
    "src/base/granted.c": {"fopen", "fread"},  # /proc and /sys: what this process may use
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
OTHER_INCLUDE = re.compile(r'^\s*#\s*(include)\b(?!\s*[<"])', re.M)
CALL = re.compile(r"(?<![\w.>])(?:%s)(?=\s*\()" % "|".join(BYTE_CALLS + NAME_CALLS))


def without_comments(text):
    return SKIP.sub(
        lambda found: (
            found.group() if found.group()[0] in "\"'" else re.sub(r"[^\n]", " ", found.group())
        ),
        text,
    )


def include_problem(name, folder, bracket, target):
    """Why the file `name` in src/`folder` (None: outside src/)
    may not include `target`; None when it may."""
    first, rest = target.split("/", 1) if "/" in target else (None, target)
    allowed_at = LIBRARIES.get(target)
    if allowed_at is not None:
        return (
            None if name.startswith(allowed_at) else f"{target} belongs to {', '.join(allowed_at)}"
        )
    if ".." in target.split("/"):
        return "includes go through include/ and src/, never through .."
    rooms = {room.rsplit("/", 1)[1] for room in ROOMS}
    if first == "tegula" or (bracket == "<" and first not in rooms | set(LAYERS)):
        return None
    where = name.rsplit("/", 1)[0]
    if where in ROOMS and first is not None:
        own = where.rsplit("/", 1)[1]
        return None if first in ROOMS[where] | {own} else f"{where} may not include {first}"
    if folder is None:
        return (
            f"{where} sees include/ only"
            if first in LAYERS and first not in LOOKING_IN.get(where, ())
            else None
        )
    if first is None:
        return 'write the folder: #include "folder/file.h"'
    if first not in LAYERS:
        return f"there is no layer {first}"
    if first == folder:
        return None
    if rest.endswith("_priv.h"):
        return f"{target} is private to src/{first}"
    allowed = LAYERS[folder]
    return (
        None if allowed is None or first in allowed else f"src/{folder} may not include src/{first}"
    )


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def check_file(name, text):
    parts = name.split("/")
    folder = parts[1] if parts[0] == "src" else None
    if parts[0] == "src" and (len(parts) < 3 or folder not in LAYERS):
        yield (
            1,
            f"src/{folder} is not in the table of layers (tools/check_layers.py, docs/design.md)",
        )
        return
    where = name.rsplit("/", 1)[0]
    if where not in ROOMS and any(where.startswith(f"{top}/") for top in WITH_ROOMS):
        yield 1, f"{where} is not in the table of rooms (tools/check_layers.py, docs/design.md)"
    code = without_comments(text)
    for found in OTHER_INCLUDE.finditer(code):
        yield line_of(code, found.start(1)), "the name of an include stands in its line"
    for found in INCLUDE.finditer(code):
        problem = include_problem(name, folder, found.group(1), found.group(2))
        if problem:
            yield line_of(code, found.start(1)), problem
    if folder is None and parts[0] != "plugins":
        return
    allowed = set().union(*(calls for prefix, calls in ALLOWED.items() if name.startswith(prefix)))
    code = blank(text)
    for found in CALL.finditer(code):
        if found.group() not in allowed:
            what = (
                f"{found.group()}() is not for {'/'.join(parts[:2])}: bytes go through "
                f"{'the host' if folder is None else 'src/io, names through src/publish'}"
            )
            yield line_of(code, found.start()), what


def room_of(file):
    """The table of a file's folder, what is in front of its name there, its name."""
    parent, _, name = file.rsplit("/", 1)[0].rpartition("/")
    if f"{parent}/{name}" in ROOMS:
        table = {room.rsplit("/", 1)[1]: allowed for room, allowed in ROOMS.items()}
        return table, f"{parent}/", name
    if file.startswith("src/"):
        return LAYERS, "src/", file.split("/")[1]
    return {}, "", ""


def check_uses(files):
    """Of {file: text}: uses across folders that the table forbids, and circles."""
    graph = uses(files)
    for file, used in graph.items():
        table, parent, folder = room_of(file)
        allowed = table.get(folder)
        for other, names in used.items():
            where = room_of(other)[2]
            if allowed is None or where in allowed | {folder} or (file, other) in ROWS_ABOVE:
                continue
            yield f"{file}: {parent}{folder} may not use {min(names)}, which {other} defines"
    for group in circles(graph):
        if tuple(group) not in CIRCLES:
            links = [
                f"{a} -> {b} ({min(graph[a][b])})" for a in group for b in group if b in graph[a]
            ]
            yield f"{group[0]}: a circle of {len(group)} files: {', '.join(links)}"


def stale_exceptions(graphs):
    """What ROWS_ABOVE and CIRCLES name and the programs no longer have."""
    found = {tuple(group) for graph in graphs for group in circles(graph)}
    for group in CIRCLES.keys() - found:
        yield f"CIRCLES names {', '.join(group)}, which are no circle"
    for file, other in ROWS_ABOVE:
        if not any(other in graph.get(file, ()) for graph in graphs):
            yield f"ROWS_ABOVE names {file}, which does not use {other}"


def check_names(files):
    """File names are unique: `git grep` and messages of compilers lead to one place."""
    seen = {}
    for file in files:
        name = file.rsplit("/", 1)[1]
        if name in seen:
            yield f"{file}: {seen[name]} has the same name"
        seen.setdefault(name, file)


def self_test():
    """The rules must be able to fail: each row is a file that breaks one, or keeps all."""
    rows = [
        ("src/base/a.c", '#include "io/io.h"\n', 1),
        (
            "src/plan/a.c",
            '#include "base/base.h"\n#include "manifest/manifest.h"\n#include <stdio.h>\n',
            0,
        ),
        ("src/plan/a.c", '#include "engine/engine.h"\n', 1),
        ("src/plan/a.c", '#include "plan/plan_priv.h"\n#include "manifest/manifest_priv.h"\n', 1),
        ("src/nowhere/a.c", "", 1),
        ("cli/a.c", '#include "options.h"\n#include <tegula/tegula.h>\n#include <jansson.h>\n', 0),
        ("cli/a.c", '#include "base/base.h"\n', 1),
        ("cli/a.c", '#include "../src/base/base.h"\n', 1),
        ("src/plan/a.c", "#include <jansson.h>\n", 1),
        ("src/engine/a.c", "#include <zstd.h>\n", 1),
        ("src/codec/a.c", "#include <zstd.h>\n", 0),
        ("src/plan/a.c", "int f(int fd) { return (int)read (fd, 0, 0); }\n", 1),
        (
            "src/plan/a.c",
            "int f(int fd) { return tegula__io_read(fd) + x->read(fd) + x.read(fd); } /* read( "
            "*/\n",
            0,
        ),
        ("src/engine/a.c", 'const char *a = "open(";\nvoid f(void) { fopen(a, a); }\n', 1),
        ("src/io/a.c", "int f(void) { return pread(0, 0, 0, 0); }\n", 0),
        ("src/io/a.c", "int f(void) { return unlink(a); }\n", 1),
        ("src/publish/a.c", "int f(void) { return rename(a, b) + pwrite(0, 0, 0, 0); }\n", 1),
        (
            "plugins/hdf5/a.c",
            '#include <tegula/tegula_plugin.h>\n#include "library/libhdf5.h"\n#include <dlfcn.h>\n',
            0,
        ),
        ("plugins/hdf5/a.c", '#include "base/base.h"\n#include <hdf5.h>\n', 2),
        ("plugins/hdf5/a.c", "int f(void) { return pread(0, 0, 0, 0); }\n", 1),
        ("src/memory/a.c", "void *f(void) { return mmap(0, 0, 0, 0, 0, 0); }\n", 0),
        ("plugins/hdf5/read/a.c", '#include "library/a.h"\n#include "read/a.h"\n', 0),
        ("plugins/hdf5/read/a.c", '#include "write/a.h"\n', 1),
        ("plugins/hdf5/read/a.c", "#include <write/a.h>\n", 1),
        ("plugins/hdf5/read/part/a.c", '#include "read/a.h"\n', 1),
        ("plugins/hdf5/nowhere/a.c", "", 1),
        ("src/plan/a.c", '#define A "engine/engine.h"\n#include A\n', 1),
    ]
    problems = [
        f"self-test: {name} {text!r} gives {got}, expected {want}"
        for name, text, want in rows
        if (got := len(list(check_file(name, text)))) != want
    ]
    a, b = "void a(void) {\n  b();\n}\n", "int *const c = 0;\nvoid b(void) {}\n"
    circle = "static void d(void) {\n}\nvoid\nb(void) {\n  a(); /* d */\n}\n"
    for want, files in [
        (0, {"src/io/a.c": a, "src/base/b.c": b}),
        (1, {"src/base/a.c": a, "src/io/b.c": b}),
        (1, {"src/io/a.c": a, "src/io/b.c": circle}),
        (2, {"src/io/a.c": a, "src/base/b.c": circle}),
        (
            0,
            {
                "src/io/a.c": "/* b() */\nvoid a(void) {\n  int b_of = 0;\n}\n",
                "src/base/b.c": "int b;\n",
            },
        ),
        (1, {"src/base/a.c": "int f(void) { return *c; }\n", "src/io/b.c": b}),
        (0, {"plugins/hdf5/read/a.c": a, "plugins/hdf5/library/b.c": b}),
        (1, {"plugins/hdf5/library/a.c": a, "plugins/hdf5/read/b.c": b}),
        (1, {"plugins/hdf5/read/a.c": a, "plugins/hdf5/b.c": b}),
    ]:
        if len(got := list(check_uses(files))) != want:
            problems.append(f"self-test: {files} give {got}, expected {want}")
    if len(list(stale_exceptions([]))) != len(CIRCLES) + len(ROWS_ABOVE):
        problems.append("self-test: an exception that nothing needs is not found")
    if len(list(check_names(["src/a/x.c", "cli/x.c", "cli/x.h"]))) != 1:
        problems.append("self-test: a name that is there twice is not found")
    return problems


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    problems = self_test()
    files = [path for top in ("src", *OUTSIDE) for path in sorted((root / top).rglob("*.[ch]"))]
    for path in files:
        name = path.relative_to(root).as_posix()
        problems += [
            f"{name}:{line}: {problem}" for line, problem in check_file(name, path.read_text())
        ]
    graphs = []
    for program in PROGRAMS:
        sources = sorted((root / program).rglob("*.c"))
        texts = {path.relative_to(root).as_posix(): path.read_text() for path in sources}
        problems += check_uses(texts)
        graphs.append(uses(texts))
    product = [path.relative_to(root).as_posix() for path in files]
    problems += stale_exceptions(graphs)
    problems += check_names(
        name for name in product if name.startswith(("src/", "plugins/", "cli/"))
    )
    print("\n".join(problems) if problems else f"layers: {len(files)} files keep the rules")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
