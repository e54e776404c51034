#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
#
# nvcc under libtool: what libtool adds for the host compiler (-fPIC and the like) reaches it by --compiler-options.
#   nvcc-lt.sh NVCC ARGUMENT...
compiler=$1
shift
for argument; do
    shift
    case $argument in
    -fmad=* | -ftz=*) ;; # nvcc's own
    -f* | -m* | -W* | -pthread) argument=--compiler-options=$argument ;;
    esac
    set -- "$@" "$argument"
done
exec "$compiler" "$@"
