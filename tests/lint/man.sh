#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# man.sh KVPOOLCTL PAGE...: the pages are well formed, and kvpoolctl(1) has every command and option that the program
# itself lists, and no other option.
set -eu

kvpoolctl=$1
shift
command -v mandoc >/dev/null || {
	echo 'skipped: there is no mandoc (Debian package mandoc)'
	exit 77
}
mandoc -T lint -W error "$@"
for page in "$@"; do
	case $page in
	*/kvpoolctl.1) text=$(mandoc -T ascii "$page" | sed 's/.\x08//g') ;;
	esac
done

help=$("$kvpoolctl" --help)
said=$(printf '%s\n' "$help" | grep -oE -- '--[a-z-]+' | sort -u)
verbs=$(printf '%s\n' "$help" | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
if [ -z "$said" ] || [ -z "$verbs" ]; then
	echo 'kvpoolctl --help lists no options or no commands'
	exit 1
fi
for word in $said $verbs; do
	printf '%s\n' "$text" | grep -qE -- "^ +(.*, )?$word\b" || {
		echo "kvpoolctl.1 has no paragraph on $word"
		exit 1
	}
done
for word in $(printf '%s\n' "$text" | sed -n '/^OPTIONS/,/^EXIT/p' | grep -E '^ {7}-' | grep -oE -- '--[a-z-]+' | sort -u); do
	printf '%s\n' "$said" | grep -qx -- "$word" || {
		echo "kvpoolctl.1 explains $word, which kvpoolctl --help does not list"
		exit 1
	}
done
