#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# scripts.sh ROOT: every shell script of the tree is free of what shellcheck knows.
set -eu

cd "$1"
command -v shellcheck >/dev/null || {
	echo 'skipped: there is no shellcheck (Debian package shellcheck)'
	exit 77
}
list=$(find . -name '.git' -prune -o -type d -exec test -d '{}/meson-private' \; -prune -o -type f -print |
	while read -r f; do
		case $(head -c 30 "$f" | head -n 1 | tr -d '\0') in
		'#!'*sh) printf '%s\n' "$f" ;;
		esac
	done)
[ -n "$list" ] || {
	echo "no shell script below $1"
	exit 1
}
printf '%s\n' "$list"
printf '%s\n' "$list" | xargs shellcheck
