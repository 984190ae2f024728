#!/usr/bin/env bash
# Installs a build into a temporary prefix, moves the prefix, and builds and runs examples/ against it in both documented ways.
#
# SPDX-License-Identifier: Apache-2.0
#
# usage: check_install.sh BUILD-FOLDER. The result of the examples is worked out by hand: a ramp's first row of 16 sums to 120.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# quiet COMMAND...: shows what it printed only when it fails
quiet() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; echo "check_install: failed: $*" >&2; exit 1; }; }

quiet cmake --install "$build" --prefix "$work/first"
mv "$work/first" "$work/moved"
prefix=$work/moved

quiet cmake -S "$root/examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$prefix"
quiet cmake --build "$work/examples"

for object in "$prefix"/lib*/libtegula.so "$prefix"/lib*/*/libtegula*.so "$prefix/bin/tegula"; do
  case $(readelf -d "$object" 2>/dev/null) in
    *"[$build"* | *":$build"*) echo "check_install: $object looks for libraries in $build" >&2; exit 1 ;;
  esac
done

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name tegula.pc)")
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs tegula)
static_flags=$(pkg-config --cflags --libs --static tegula)
library=$(pkg-config --variable=libdir tegula)
# shellcheck disable=SC2086 # flags are words
quiet cc "$root/examples/load.c" $flags "-Wl,-rpath,$library" -o "$work/load_pkg_config"
# shellcheck disable=SC2086
quiet cc "$root/examples/load.c" ${static_flags/-ltegula/-l:libtegula.a} -o "$work/load_pkg_config_static"
cat >"$work/header.cc" <<'END'
#include <tegula/tegula.h>
int main() { return tegula_version()[0] == '0' ? 0 : 1; }
END
if command -v c++ >/dev/null; then
  # shellcheck disable=SC2086
  quiet c++ "$work/header.cc" $flags "-Wl,-rpath,$library" -o "$work/header" && quiet "$work/header"
fi

quiet "$prefix/bin/tegula" write "$work/shards" --shape 1000,16 --num-shards 5 --values ramp
expected=$(printf 'shape 1000 16\nfirst row sums to 120')
for program in "$work/examples/load" "$work/examples/load_static" "$work/load_pkg_config" "$work/load_pkg_config_static"; do
  got=$("$program" "$work/shards")
  [ "$got" = "$expected" ] || { echo "check_install: $(basename "$program") printed: $got" >&2; exit 1; }
done

# the plugin is found from a moved prefix: what is said of a file that only begins like HDF5 does not come from looking for it
printf '\211HDF\r\n\032\n' >"$work/only.h5"
for program in "$prefix/bin/tegula info" "$work/load_pkg_config"; do
  # shellcheck disable=SC2086
  said=$($program "$work/only.h5" 2>&1) && { echo "check_install: $program took $work/only.h5" >&2; exit 1; }
  case $said in
    *"plugin"*"was not found"*) echo "check_install: $program: $said" >&2; exit 1 ;;
  esac
done

# completion and man pages lie where shells and man look for them
bash -c 'source "$1" && complete -p tegula' - "$prefix/share/bash-completion/completions/tegula" >/dev/null ||
  { echo "check_install: no completion for bash" >&2; exit 1; }
head -n 1 "$prefix/share/zsh/site-functions/_tegula" | grep -qx '#compdef tegula' ||
  { echo "check_install: no completion for zsh" >&2; exit 1; }
if command -v scdoc >/dev/null; then
  for page in "$root"/docs/man/*.scd; do
    [ -s "$prefix/share/man/man1/$(basename "$page" .scd)" ] || { echo "check_install: no $(basename "$page" .scd)" >&2; exit 1; }
  done
fi
echo "install: find_package and pkg-config, shared and static, from a moved prefix"
