dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) the TAGC authors
dnl
dnl Things that only tests and examples use. --with-X=yes and missing stops; --with-X=check and missing is a line in the
dnl summary.

AC_DEFUN([TAGC_CMOCKA], [
  AC_ARG_WITH([cmocka], [AS_HELP_STRING([--with-cmocka], [build the unit tests, which use CMocka [check]])],
              [], [with_cmocka=check])
  AC_ARG_VAR([CMOCKA_CFLAGS], [compiler flags for CMocka])
  AC_ARG_VAR([CMOCKA_LIBS], [linker flags for CMocka])
  tagc_cmocka=no
  AS_IF([test "$with_cmocka" != no], [
    AS_IF([test -z "$CMOCKA_LIBS"], [
      AS_IF([test -n "$PKG_CONFIG" && $PKG_CONFIG --exists cmocka],
            [CMOCKA_CFLAGS=`$PKG_CONFIG --cflags cmocka` CMOCKA_LIBS=`$PKG_CONFIG --libs cmocka`],
            [CMOCKA_LIBS=-lcmocka])])
    tagc_save_CPPFLAGS=$CPPFLAGS tagc_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $CMOCKA_CFLAGS" LIBS="$CMOCKA_LIBS $LIBS"
    AC_MSG_CHECKING([for CMocka])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>]], [[return cmocka_run_group_tests_name("", (const struct CMUnitTest *)0, 0, 0);]])],
                   [tagc_cmocka=yes])
    AC_MSG_RESULT([$tagc_cmocka])
    CPPFLAGS=$tagc_save_CPPFLAGS LIBS=$tagc_save_LIBS
    AS_IF([test $tagc_cmocka = no && test "$with_cmocka" = yes],
          [AC_MSG_ERROR([--with-cmocka was given, but CMocka is not found (Debian: libcmocka-dev)])])])
  AS_IF([test $tagc_cmocka = no], [CMOCKA_CFLAGS= CMOCKA_LIBS=])
  AM_CONDITIONAL([HAVE_CMOCKA], [test $tagc_cmocka = yes])
])

AC_DEFUN([TAGC_CBLAS], [
  AC_ARG_WITH([cblas], [AS_HELP_STRING([--with-cblas], [use a CBLAS in the examples [check]])], [], [with_cblas=check])
  AC_ARG_VAR([CBLAS_CFLAGS], [compiler flags for CBLAS])
  AC_ARG_VAR([CBLAS_LIBS], [linker flags for CBLAS])
  tagc_cblas=no
  AS_IF([test "$with_cblas" != no], [
    tagc_save_CPPFLAGS=$CPPFLAGS tagc_save_LIBS=$LIBS
    tagc_given=$CBLAS_LIBS
    AC_MSG_CHECKING([for CBLAS])
    for tagc_try in given openblas -lopenblas cblas -lcblas; do
      AS_CASE([$tagc_try],
        [given], [test -n "$tagc_given" || continue],
        [-l*],   [test -z "$tagc_given" || continue
                  CBLAS_LIBS=$tagc_try],
        [test -z "$tagc_given" && test -n "$PKG_CONFIG" && $PKG_CONFIG --exists $tagc_try || continue
         CBLAS_CFLAGS=`$PKG_CONFIG --cflags $tagc_try` CBLAS_LIBS=`$PKG_CONFIG --libs $tagc_try`])
      CPPFLAGS="$tagc_save_CPPFLAGS $CBLAS_CFLAGS" LIBS="$CBLAS_LIBS $tagc_save_LIBS"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cblas.h>]],
        [[float a = 1; cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, a, &a, 1, &a, 1, a, &a, 1);]])],
        [tagc_cblas=yes; break])
    done
    CPPFLAGS=$tagc_save_CPPFLAGS LIBS=$tagc_save_LIBS
    AS_IF([test $tagc_cblas = yes], [AC_MSG_RESULT([$CBLAS_LIBS])], [AC_MSG_RESULT([no])])
    AS_IF([test $tagc_cblas = no && test "$with_cblas" = yes],
          [AC_MSG_ERROR([--with-cblas was given, but no CBLAS is found (Debian: libopenblas-dev)])])])
  AS_IF([test $tagc_cblas = yes], [AC_DEFINE([HAVE_CBLAS], [1], [the examples use a CBLAS])],
        [CBLAS_CFLAGS= CBLAS_LIBS=])
  AM_CONDITIONAL([HAVE_CBLAS], [test $tagc_cblas = yes])
])
