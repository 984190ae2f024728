# The package as a whole: types, documentation, import, the shell command.
#
# SPDX-License-Identifier: Apache-2.0
import doctest
import importlib
import os
import pathlib
import pkgutil
import re
import subprocess
import sys

import pytest
import tegula

from tested import PACKAGE

ROOT = pathlib.Path(__file__).parents[2]
HERE = pathlib.Path(__file__).parent


def tool(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_types(tmp_path):
    pytest.importorskip("mypy")
    tool("mypy", "--cache-dir", tmp_path, "python/tegula", "tests/python/use.py", "examples")


def test_style():
    pytest.importorskip("ruff")
    tool("ruff", "check", "--no-cache")
    tool("ruff", "format", "--check", "--no-cache")


def test_the_stubs_name_what_is_there():
    from tegula import _core

    stub = (ROOT / "python/tegula/_core.pyi").read_text()
    for name in dir(_core):
        if not name.startswith("__"):
            assert f"class {name}" in stub or f"def {name}(" in stub, name
            for method in (
                vars(getattr(_core, name)) if isinstance(getattr(_core, name), type) else ()
            ):
                assert method.startswith("__") or f"def {method}(" in stub, f"{name}.{method}"


def test_the_typed_program_runs(run_python, tmp_path):
    program = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); import use, pathlib; "
        "print(use.main(pathlib.Path(sys.argv[1])))"
    )
    assert run_python(program, tmp_path) == "True not_found True 1.5\n"


def modules():
    yield tegula
    for found in pkgutil.walk_packages(tegula.__path__, "tegula."):
        # tests/legate
        if found.name not in ("tegula.__main__", "tegula._core") and not found.name.startswith(
            "tegula.legate"
        ):
            yield importlib.import_module(found.name)


@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")
def test_examples_in_the_documentation():
    tried = 0
    for module in modules():
        result = doctest.testmod(module)
        assert result.failed == 0, module
        tried += result.attempted
    assert tried > 10


PAGES = [ROOT / "docs/python.md", *sorted((ROOT / "docs/howto").glob("*.md"))]


@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_a_page(page, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE))  # of the shell command
    # the end of a block is no output
    text = re.sub("^```.*$", "", page.read_text(), flags=re.MULTILINE)
    runner = doctest.DocTestRunner()
    runner.run(doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0))
    result = runner.summarize()
    assert result.failed == 0
    assert result.attempted >= text.count(">>> ") > 5


def test_the_pages_are_a_site(tmp_path):
    """Every page is reached, every link and every name leads somewhere,
    every docstring is well formed."""
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-d",
        tmp_path / "doctrees",
        ROOT / "docs",
        tmp_path / "site",
    ]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    pages = {page.stem for page in (tmp_path / "site/howto").glob("*.html")}
    assert pages == {page.stem for page in PAGES[1:]} and len(pages) == 13
    interface = (tmp_path / "site/api.html").read_text()
    assert all(
        f'id="tegula.{name}"' in interface
        for name in ("open", "load", "save", "fence", "Dataset.read", "Array.tiles")
    )


def test_everything_public_is_explained():
    for name in tegula.__all__:
        thing = getattr(tegula, name)
        if isinstance(thing, type) and issubclass(thing, tegula.Error):
            continue
        assert thing.__doc__, name
        for method in vars(thing) if isinstance(thing, type) else ():
            if (
                not method.startswith("_")
                and name in ("Dataset", "Array")
                and method not in ("ndim",)
            ):
                assert getattr(thing, method).__doc__, f"{name}.{method}"


def test_import_does_nothing(run_python):
    program = """
import numpy, os, sys, threading
before = set(sys.modules)
count = lambda: [len(os.listdir("/proc/self/" + kind)) for kind in ("task", "fd")]
started = count()
import tegula
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(new - {"tegula", "__future__", "gc", "ast"}), count() == started)
"""
    assert run_python(program) == "[] True\n"


LATER = """
import os, sys, threading, tegula
folder = sys.argv[1]
paths = {name: f"{folder}/{name}.npy" for name in ("numbers", "records", "empty", "big", "text")}
loaded = {name: tegula.load(path, tiles=2) for name, path in paths.items() if name != "records"}
opened = {name: tegula.open(path) for name, path in paths.items() if name != "records"}
shapes = {name: dataset.shape for name, dataset in opened.items()}
assert "numpy" not in sys.modules
child = os.fork()
if child == 0:  # where the handles of this process mean nothing
    assert loaded["numbers"].local.sum() == 276 and opened["numbers"][3].tolist() == [9, 10, 11]
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
found = []
def look():
    found.append((loaded["numbers"].local, opened["numbers"][1:4, 2]))
threads = [threading.Thread(target=look) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
import numpy
loaded["records"], opened["records"] = tegula.load(paths["records"]), tegula.open(paths["records"])
for name, path in paths.items():
    expected = numpy.load(path)
    native = expected.astype(expected.dtype.newbyteorder("="))
    made = numpy.asarray(loaded[name])
    assert made.dtype == native.dtype and made.shape == expected.shape, name
    assert (made == native).all() and loaded[name].local is loaded[name].local, name
    assert (opened[name][...] == native).all() and opened[name].dtype == native.dtype, name
    assert shapes.get(name, expected.shape) == expected.shape
    assert name == "empty" or numpy.shares_memory(made, loaded[name].tiles[0][1])
for local, part in found:
    assert numpy.shares_memory(local, loaded["numbers"].local) and part.tolist() == [5, 8, 11]
print("fine")
"""


def test_numpy_is_imported_when_it_is_needed(run_python, tmp_path):
    """A load needs none of it; arrays, dtypes and small reads that come later are the same, also
    in a child and from many threads."""
    import numpy

    arrays = {
        "numbers": numpy.arange(24).reshape(8, 3),
        "big": numpy.arange(6, dtype=">f8"),
        "empty": numpy.zeros((0, 4), "i2"),
    }
    arrays["records"] = numpy.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f8")])
    arrays["text"] = numpy.array(["a", "bc", "def"])
    for name, array in arrays.items():
        numpy.save(tmp_path / f"{name}.npy", array)
    assert run_python(LATER, tmp_path) == "fine\n"


def test_arrays_can_be_pickled_and_copied(run_python, tmp_path):
    """Also before anything has asked for numpy."""
    import numpy

    numpy.save(tmp_path / "x.npy", numpy.arange(24).reshape(8, 3))
    program = """
import copy, pickle, sys, tegula
a = tegula.load(sys.argv[1], tiles=3)
assert "numpy" not in sys.modules
protocols = range(pickle.HIGHEST_PROTOCOL + 1)
again = [pickle.loads(pickle.dumps(a, protocol)) for protocol in protocols]
again += [copy.deepcopy(a), copy.copy(a)]
import numpy
for b in again:
    assert (b.local == numpy.load(sys.argv[1])).all() and b.hash() == a.hash()
    assert [box for box, _ in b.tiles] == [box for box, _ in a.tiles]
print([numpy.shares_memory(a.local, b.local) for b in again].index(True) == len(again) - 1)
"""
    assert run_python(program, tmp_path / "x.npy") == "True\n"


def test_h5py_is_not_imported(run_python, tmp_path):
    program = """
import sys, tegula, numpy
tegula.save(numpy.arange(5), sys.argv[1])
print(tegula.open(sys.argv[1])[:].sum(), "h5py" in sys.modules)
"""
    assert run_python(program, tmp_path / "x.h5") == "10 False\n"


@pytest.mark.parametrize("order", ["import h5py, tegula", "import tegula, h5py"])
def test_h5py_beside_us(run_python, tmp_path, order):
    program = f"""
import sys, numpy
{order}
tegula.save(numpy.arange(5), sys.argv[1], codec="deflate")
with h5py.File(sys.argv[1], "a") as file: file["y"] = file["data"][...] * 2
print(tegula.open(sys.argv[1], "y")[:].sum())
"""
    assert run_python(program, tmp_path / "x.h5") == "20\n"


def test_the_shell_command(tmp_path):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "tegula", *arguments],
            env={"PYTHONPATH": str(PACKAGE)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert run("--version").stdout == f"tegula {tegula.__version__}\n"
    assert run("nonsense").returncode == 2
    import numpy

    tegula.save(numpy.arange(6), tmp_path / "x.h5")
    assert '"hdf5"' in run("info", str(tmp_path / "x.h5"), "--json").stdout


def test_a_wheel_is_built_of_all_that_goes_into_it():
    """`pip install .` builds the targets that pyproject.toml names, and no others."""
    import tomllib

    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["build"][
        "targets"
    ]
    installed = re.findall(
        r"install\(TARGETS ([^)]*?) (?:LIBRARY|RUNTIME|ARCHIVE)",
        (ROOT / "python/CMakeLists.txt").read_text(),
    )
    assert sorted(" ".join(installed).split()) == sorted(built) and len(built) > 3


def test_installed(tmp_path, run_python):
    """What `cmake --install` puts into a wheel works from any folder."""
    build = PACKAGE.parent
    if not (build / "CMakeCache.txt").exists():
        pytest.skip("the package was not built here")
    subprocess.run(
        ["cmake", "--install", build, "--component", "python", "--prefix", tmp_path / "a"],
        check=True,
        capture_output=True,
    )
    (tmp_path / "a").rename(tmp_path / "b")
    program = """
import sys, numpy, tegula
assert tegula.__file__.startswith(sys.argv[1])
tegula.save(numpy.arange(5), sys.argv[1] + "/x.h5", codec="deflate")
print(tegula.open(sys.argv[1] + "/x.h5")[:].sum())
"""
    assert run_python(program, tmp_path / "b", PYTHONPATH=str(tmp_path / "b")) == "10\n"


def test_the_example(run_python, shards):
    program = (ROOT / "examples/load.py").read_text()
    folder, array = shards
    lines = run_python(program, folder).splitlines()
    assert lines[0] == "shape 1000 7"
    assert lines[2] == f"rows 250 to 500 sum to {array[250:500].sum(dtype='f8')}"
    assert len(lines) == 5
