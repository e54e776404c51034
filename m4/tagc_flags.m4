dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) the TAGC authors

dnl TAGC_TRY_CFLAGS(FLAGS, IF-TAKEN, IF-NOT, [PROLOGUE], [BODY])
dnl Does the C compiler take FLAGS, without a warning, for this program?
AC_DEFUN([TAGC_TRY_CFLAGS], [
  tagc_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS -Werror $1"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([$4], [$5])], [tagc_taken=yes], [tagc_taken=no])
  CFLAGS=$tagc_save_CFLAGS
  AS_IF([test "$tagc_taken" = yes], [$2], [$3])
])

dnl TAGC_ADD_CFLAGS(VARIABLE, FLAG...)
dnl Appends each of the flags that the compiler takes.
AC_DEFUN([TAGC_ADD_CFLAGS], [
  for tagc_flag in $2; do
    AC_MSG_CHECKING([whether $CC takes $tagc_flag])
    TAGC_TRY_CFLAGS([$tagc_flag], [AS_VAR_APPEND([$1], [" $tagc_flag"])])
    AC_MSG_RESULT([$tagc_taken])
  done
])
