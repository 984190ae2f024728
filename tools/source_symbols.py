"""Symbols of C files, read from their text: what each file defines for others, what it uses, and
circles of files that use each other.

SPDX-License-Identifier: Apache-2.0

A definition begins in the first column and is not static: a function with its body, or an object
with its value. A use is the name anywhere in the code of another file.
"""

import re

SKIP = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
FUNCTION = re.compile(r"^(?!static\b|typedef\b)[A-Za-z_][^;{}()=#]*?\b(\w+)\([^;{}]*\)\s*\{", re.M)
OBJECT = re.compile(
    r"^(?!static\b|typedef\b|extern\b|(?:struct|union|enum) \w+;)"
    r"[A-Za-z_][\w \t*]*[ *](\w+)(?:\[\w*\])*(?:\s=\s|;)",
    re.M,
)
WORD = re.compile(r"[A-Za-z_]\w*")


def blank(text):
    """Comments and texts become spaces; lines keep their numbers."""
    return SKIP.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def definitions(text):
    code = DIRECTIVE.sub("", blank(text))
    names = {found.group(1) for rule in (FUNCTION, OBJECT) for found in rule.finditer(code)}
    return {name for name in names if not name.startswith("__")}


def uses(files):
    """{file: {other file: names that it defines and the file uses}} of {file: text}."""
    owner = {name: file for file, text in files.items() for name in definitions(text)}
    graph = {}
    for file, text in files.items():
        graph[file] = {}
        for name in set(WORD.findall(blank(text))):
            if owner.get(name, file) != file:
                graph[file].setdefault(owner[name], set()).add(name)
    return graph


def circles(graph):
    """Groups of files each of which leads to all others of its group (Tarjan's algorithm)."""
    number, low, stack, found = {}, {}, [], []
    for start in graph:
        if start in number:
            continue
        work = [(start, iter(graph[start]))]
        number[start] = low[start] = len(number)
        stack.append(start)
        while work:
            file, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[file])
                if low[file] == number[file]:
                    at = stack.index(file)
                    if len(stack) - at > 1:
                        found.append(sorted(stack[at:]))
                    del stack[at:]
            elif following not in number:
                number[following] = low[following] = len(number)
                stack.append(following)
                work.append((following, iter(graph[following])))
            elif following in stack:
                low[file] = min(low[file], number[following])
    return found
