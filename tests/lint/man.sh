#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# man.sh PAGE...: the pages are well formed.
set -eu

command -v mandoc >/dev/null || {
	echo 'skipped: there is no mandoc (Debian package mandoc)'
	exit 77
}
mandoc -T lint -W error "$@"
