#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# find_model.sh tiny|real SOURCE-ROOT FOLDER: prints the path of a model, or fails and prints why there
# is none. The tiny one is made in FOLDER.
set -eu
which=$1 root=$2 folder=$3

for f in GPL-3 LGPL-2.1; do
	if [ ! -f "/usr/share/common-licenses/$f" ]; then
		echo "skipped: there is no text $f in /usr/share/common-licenses (package base-files)"
		exit 1
	fi
done
if [ "$which" = tiny ]; then
	"$root/tools/llama-tiny-model" "$folder/tiny.gguf"
	echo "$folder/tiny.gguf"
	exit 0
fi
model=${KVPOOL_TEST_MODEL:-}
env=${XDG_CACHE_HOME:-$HOME/.cache}/kvpool/env.sh
if [ -z "$model" ] && [ -f "$env" ]; then
	# shellcheck source=/dev/null disable=SC2153
	model=$(. "$env" && echo "$MODEL")
fi
if [ ! -f "$model" ]; then
	echo 'skipped: no model (KVPOOL_TEST_MODEL=FILE.gguf, or run tools/llama-setup)'
	exit 1
fi
echo "$model"
