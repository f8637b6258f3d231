#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# share.sh SHARE tiny|real SOURCE-ROOT KVPOOLD: processes that share prefixes through a daemon, and what
# each of them must find. Logits are compared as digests.
set -euo pipefail
share=$1 which=$2 root=$3 kvpoold=$4

# Threads that wait by spinning make everything several times slower when the processors are shared.
export GOMP_SPINCOUNT=0

tmp=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true; wait; rm -rf "$tmp"' EXIT

model=$("$root/tests/llama/find_model.sh" "$which" "$root" "$tmp") || {
	echo "$model"
	exit 77
}
text=/usr/share/common-licenses/GPL-3
other=/usr/share/common-licenses/LGPL-2.1
tokens=300
have=288 # whole blocks of 32, not the last token

fail() {
	echo "FAILED: $*"
	exit 1
}

# run NAME SHARE-ARGUMENTS...: leaves the line that the process printed in $line.
run() {
	local name=$1

	shift
	line=$("$share" "$@")
	echo "$name: $line"
}

field() { sed -n "s/.*$1=\([^ ]*\).*/\1/p" <<<"$line"; }

expect() {
	local got

	got=$(field "$1")
	[ "$got" = "$2" ] || fail "$1 is $got, expected $2"
}

start_daemon() {
	export KVPOOL_SOCKET=$tmp/kvpool.sock
	mkfifo "$tmp/ready"
	"$kvpoold" --socket "$KVPOOL_SOCKET" --pool-size 512M --ready-fd 3 \
		3>"$tmp/ready" >"$tmp/daemon.log" 2>&1 &
	daemon=$!
	read -r <"$tmp/ready" || fail "the daemon did not start: $(cat "$tmp/daemon.log")"
}

# What a process computes alone, split where the cache ends, and at once.
run 'alone, split' "$model" f16 "$text" $tokens split=$have
split=$(field logits)
run 'alone' "$model" f16 "$text" $tokens split=0
whole=$(field logits)

run 'no daemon' "$model" f16 "$text" $tokens pool
expect restored 0
expect logits "$whole"

start_daemon
run 'first' "$model" f16 "$text" $tokens pool
expect restored 0
expect stored 9
expect logits "$whole"
run 'second' "$model" f16 "$text" $tokens pool
expect restored $have
expect stored 0
expect logits "$split"
run 'longer' "$model" f16 "$text" 400 pool
expect restored $have
expect stored 3
run 'other text' "$model" f16 "$other" $tokens pool
expect restored 0
run 'other type' "$model" q8_0 "$text" $tokens pool
expect restored 0
LLAMA_ATTN_ROT_DISABLE=1 run 'other rotation' "$model" q8_0 "$text" $tokens pool
expect restored 0
[[ $line == *"differs in"*rotation* ]] || fail 'the difference does not name the rotation'
run 'q8_0 again' "$model" q8_0 "$text" $tokens pool
expect restored $have

# Two at once, with a text that nobody has: one computes, the other waits for it.
"$share" "$model" q4_0 "$text" $tokens pool >"$tmp/a" &
a=$!
"$share" "$model" q4_0 "$text" $tokens pool >"$tmp/b" &
b=$!
wait $a
wait $b
echo "at once: $(cat "$tmp/a")"
echo "at once: $(cat "$tmp/b")"
found=$(sed -n 's/^restored=\([0-9]*\).*/\1/p' "$tmp/a" "$tmp/b" | sort -n | xargs)
[ "$found" = "0 $have" ] || fail "two at once restored $found, expected 0 and $have"

# One claims a prompt and is killed while another one waits for it.
"$share" "$model" f16 "$other" 700 claim >"$tmp/claim" &
claimer=$!
until grep -q restored "$tmp/claim"; do sleep 0.05; done
"$share" "$model" f16 "$other" 700 pool >"$tmp/waiter" &
waiter=$!
sleep 1
kill -9 $claimer
wait $claimer 2>/dev/null || true
wait $waiter || fail 'the waiting process failed'
echo "after a kill: $(cat "$tmp/waiter")"
grep -q "restored=$have " "$tmp/waiter" || fail 'what was cached before was not restored'
grep -q 'stored=12 ' "$tmp/waiter" || fail 'the waiting process did not take over'

# Other weights of the same shape.
if [ "$which" = tiny ]; then
	"$root/tools/llama-tiny-model" "$tmp/other.gguf" --seed 2
	run 'other weights' "$tmp/other.gguf" f16 "$text" $tokens pool
	expect restored 0
	[[ $line == *"differs in"*weights* ]] || fail 'the difference does not name the weights'
fi

kill "$daemon"
wait "$daemon" || fail "the daemon ended badly: $(cat "$tmp/daemon.log")"
daemon=
run 'daemon gone' "$model" f16 "$text" $tokens pool
expect restored 0
expect logits "$whole"
echo 'all as expected'
