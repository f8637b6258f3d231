#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# localise.sh CC OBJCOPY AR OUTPUT FOLDER ARCHIVE...: joins archives into one object and makes its
# hidden names local.
set -eu
cc=$1 objcopy=$2 ar=$3 output=$4 folder=$5
shift 5
mkdir -p "$folder"
"$cc" -r -nostdlib -Wl,--whole-archive "$@" -Wl,--no-whole-archive -o "$folder/kvpool-llama.o"
"$objcopy" --localize-hidden "$folder/kvpool-llama.o"
rm -f "$output"
"$ar" rcs "$output" "$folder/kvpool-llama.o"
