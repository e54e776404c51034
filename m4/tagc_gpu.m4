dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) the TAGC authors

dnl TAGC_EXECUTOR
dnl Can the C++ compiler build the tests' executor of GPU kernels (tests/executor), and the C compiler link it? Its flags
dnl are those of the C code as far as they decide about bits and sanitizers.
AC_DEFUN([TAGC_EXECUTOR], [
  EXECUTOR_CXXFLAGS='-std=c++17 -O2 -g -ffp-contract=off -fno-exceptions -fno-rtti -Wall -Wextra'
  AS_IF([test "$enable_werror" = yes], [AS_VAR_APPEND([EXECUTOR_CXXFLAGS], [" -Werror"])])
  AS_IF([test "$enable_sanitizers" != no],
        [AS_VAR_APPEND([EXECUTOR_CXXFLAGS], [" -fsanitize=$enable_sanitizers -fno-sanitize-recover=all"])])
  tagc_executor=no tagc_executor_why=
  AS_CASE([$enable_sanitizers],
    [*thread*], [tagc_executor_why='the thread sanitizer does not know fibers'])
  AS_IF([test -z "$CXX"], [tagc_executor_why='no C++ compiler'])
  AS_IF([test -z "$tagc_executor_why"], [
    AC_MSG_CHECKING([whether $CXX builds what $CC links])
    AS_ECHO(['extern "C" int tagc_a(int x) { return [[=]] { return x + 1; }(); }']) >conftest_a.cpp
    AS_IF([$CXX $EXECUTOR_CXXFLAGS -c conftest_a.cpp -o conftest_a.$ac_objext >&AS_MESSAGE_LOG_FD 2>&1], [
      tagc_save_LIBS=$LIBS tagc_save_CFLAGS=$CFLAGS
      LIBS="conftest_a.$ac_objext $LIBS" CFLAGS="$CFLAGS $TAGC_CFLAGS"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[int tagc_a(int);]], [[return tagc_a(-1);]])], [tagc_executor=yes])
      LIBS=$tagc_save_LIBS CFLAGS=$tagc_save_CFLAGS])
    rm -f conftest_a.*
    AC_MSG_RESULT([$tagc_executor])
    AS_IF([test $tagc_executor = no], [tagc_executor_why="$CXX does not fit $CC"])])
  AC_SUBST([EXECUTOR_CXXFLAGS])
  AM_CONDITIONAL([HAVE_EXECUTOR], [test $tagc_executor = yes])
])
