#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh SOURCE-ROOT SEEDS-PROGRAM [RUNS]: builds the fuzzer of the state parser with clang and
# runs it for a fixed number of inputs from a fixed seed.
set -eu
root=$1 seeds=$2 runs=${3:-1000000}

clang=$(command -v clang-14 || command -v clang || true)
if [ -z "$clang" ]; then
	echo 'skipped: there is no clang (Debian packages clang-14 and libclang-rt-14-dev)'
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/corpus" "$tmp/found"
echo 'int LLVMFuzzerTestOneInput(const char *p, unsigned long n) { return p && n > 99999; }' \
	>"$tmp/try.c"
if ! "$clang" -fsanitize=fuzzer,address "$tmp/try.c" -o "$tmp/try" 2>"$tmp/log"; then
	echo 'skipped: clang cannot link a fuzzer (Debian package libclang-rt-14-dev)'
	exit 77
fi
"$clang" -std=gnu17 -D_GNU_SOURCE -O1 -g -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=all -I"$root" "$root/tests/llama/fuzz_blob.c" \
	"$root/client/llama/blob.c" "$root/client/llama/shape.c" -o "$tmp/fuzz_blob"
"$seeds" "$tmp/corpus"
"$tmp/fuzz_blob" -runs="$runs" -seed=1 -max_len=4096 -print_final_stats=1 \
	-artifact_prefix="$tmp/found/" "$tmp/corpus" >"$tmp/log" 2>&1 || {
	cat "$tmp/log"
	for f in "$tmp"/found/*; do
		echo "$f:"
		od -An -tx1 "$f"
	done
	exit 1
}
grep -E 'DONE|stat::number_of_executed_units' "$tmp/log"
