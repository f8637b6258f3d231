#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# oracle.sh ORACLE tiny|real SOURCE-ROOT: two processes publish, others restore and compare, for
# each type of KV.
set -eu
oracle=$1 which=$2 root=$3
text=/usr/share/common-licenses/GPL-3
other=/usr/share/common-licenses/LGPL-2.1

# Threads that wait by spinning make everything several times slower when the processors are shared.
export GOMP_SPINCOUNT=0

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

model=$("$root/tests/llama/find_model.sh" "$which" "$root" "$tmp") || {
	echo "$model"
	exit 77
}

for type in f16 q8_0 q4_0; do
	"$oracle" publish "$model" $type "$text" "$tmp/blocks" 2
	# The same bytes from another process, and by way of one state instead of block by block.
	"$oracle" publish "$model" $type "$text" "$tmp/again" 2
	"$oracle" publish "$model" $type "$text" "$tmp/whole" 1
	cmp "$tmp/blocks" "$tmp/again"
	cmp "$tmp/blocks" "$tmp/whole"
	"$oracle" publish "$model" $type "$other" "$tmp/wrong" 2
	"$oracle" consume "$model" $type "$text" "$tmp/blocks" "$tmp/wrong"
done
"$oracle" refuse "$model" f16 "$text" - -
