#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
echo 'skipped: built without libllama (meson options llama_include, llama_lib; tools/llama-setup)'
exit 77
