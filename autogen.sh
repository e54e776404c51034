#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
#
# Makes configure and Makefile.in from configure.ac and Makefile.am. Needs autoconf, automake, libtool and pkg-config.
set -e
cd "$(dirname "$0")"
for tool in autoreconf automake libtoolize; do
    command -v $tool >/dev/null || {
        echo "autogen.sh: $tool is missing (Debian: apt install autoconf automake libtool pkg-config)" >&2
        exit 1
    }
done
mkdir -p config
exec autoreconf --install --force --warnings=all,no-obsolete "$@"
