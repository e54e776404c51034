# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors

# One convenience library for each instruction set: its file alone is compiled with its flags.
tagcb_libs =

noinst_LTLIBRARIES += $(tagcb_libs)
