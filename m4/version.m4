dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) the TAGC authors
dnl
dnl The only place of the version numbers. tests/abi/check-version compares them with include/tagc.h.

dnl Library version: what a release is called. tagc.h has the first two as TAGC_VERSION and TAGC_SUBVERSION.
m4_define([tagc_version_major], [0])
m4_define([tagc_version_minor], [1])
m4_define([tagc_version_patch], [0])
m4_define([tagc_version], [tagc_version_major.tagc_version_minor.tagc_version_patch])

dnl API version: goes up when a program could be written that compiles with this tagc.h and not with the last one.
m4_define([tagc_api_version], [1])

dnl Wire version: goes up when the bytes of a message change. Ranks whose wire versions differ cannot talk.
m4_define([tagc_wire_version], [2])

dnl Binary interface, in libtool's three numbers (current:revision:age). At a release, against the one before:
dnl  - only the inside changed:                           c:r:a  becomes  c  : r+1 : a
dnl  - something public was added, nothing else:          c:r:a  becomes  c+1: 0   : a+1
dnl  - something public was removed or means another now: c:r:a  becomes  c+1: 0   : 0
dnl  - nothing changed:                                   leave them alone
dnl The so-version is current - age. Before version 1.0 nothing is promised, and the numbers stay 0:0:0.
m4_define([tagc_lt_current], [0])
m4_define([tagc_lt_revision], [0])
m4_define([tagc_lt_age], [0])
m4_if(m4_eval(tagc_lt_current < tagc_lt_age), [1],
      [m4_fatal([m4/version.m4: age is above current])])
m4_if(m4_eval(tagc_version_major > 0 && tagc_lt_current - tagc_lt_age < 1), [1],
      [m4_fatal([m4/version.m4: from version 1.0 on the so-version is at least 1])])
