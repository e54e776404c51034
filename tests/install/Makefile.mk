# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
