#!/usr/bin/env bash
# All C files are as clang-format makes them; --fix makes them so.
#
# SPDX-License-Identifier: Apache-2.0
#
# The version counts, since others break lines elsewhere: that of tools/requirements.txt, in build/venv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tool=build/venv/bin/clang-format
[ -x "$tool" ] || { echo "check_format: no $tool: scripts/test and scripts/build make it" >&2; exit 1; }
mapfile -t files < <(git ls-files '*.c' '*.h')
[ "${1-}" = --fix ] && exec "$tool" -i "${files[@]}"
"$tool" --dry-run --Werror "${files[@]}"
long=$(awk 'length($0) > 100 {print FILENAME ":" FNR ": longer than 100 columns"}' "${files[@]}")
[ -z "$long" ] || { echo "$long" >&2; exit 1; }
