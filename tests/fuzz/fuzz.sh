#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh ROOT BUILD TARGET DRIVER RUNS: builds fuzz_TARGET.c with clang and libFuzzer, and runs it
# for a fixed number of inputs from a fixed start, beginning with the seeds that DRIVER writes.
set -eu
root=$1 build=$2 target=$3 driver=$4 runs=$5

clang=$(command -v clang-14 || command -v clang || true)
if [ -z "$clang" ]; then
	echo 'skipped: there is no clang (Debian packages clang-14 and libclang-rt-14-dev)'
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/corpus" "$tmp/found"
echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { return 0 * n * !p; }' >"$tmp/try.c"
if ! "$clang" -fsanitize=fuzzer,address "$tmp/try.c" -o "$tmp/try" 2>"$tmp/log"; then
	echo 'skipped: clang cannot link a fuzzer (Debian package libclang-rt-14-dev)'
	exit 77
fi
more=
if [ "$target" = config ]; then
	for name in complaint config config_file config_table config_value log memory settings; do
		more="$more $root/daemon/$name.c"
	done
	more="$more $root/base/parse.c $root/base/suggest.c -linih -lsystemd"
fi
# shellcheck disable=SC2086 # a list of words
"$clang" -std=gnu17 -D_GNU_SOURCE -O1 -g -w -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=all -I"$root" -I"$build" \
	"$root/tests/fuzz/fuzz_$target.c" "$root/tests/fuzz/messages.c" \
	"$root/tests/fuzz/descriptor.c" "$root"/proto/*.c "$build/proto/kvpool.pb-c.c" \
	"$root/tests/fuzz/gguf_file.c" "$root/tools/kvpoolctl/gguf.c" "$root/tools/kvpoolctl/shape.c" \
	"$root/tools/kvpoolctl/say.c" "$root/base/sha256.c" "$root/base/hex.c" $more \
	-lprotobuf-c -lcrypto -o "$tmp/fuzz"
"$driver" --write "$tmp/corpus"
"$tmp/fuzz" -runs="$runs" -seed=1 -max_len=65536 -timeout=10 -print_final_stats=1 \
	-artifact_prefix="$tmp/found/" "$tmp/corpus" >"$tmp/log" 2>&1 || {
	tail -n 60 "$tmp/log"
	for f in "$tmp"/found/*; do
		echo "$f:"
		od -An -v -tx1 "$f"
	done
	exit 1
}
grep -E 'DONE|stat::number_of_executed_units' "$tmp/log"
