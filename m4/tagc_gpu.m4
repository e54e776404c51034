dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) the TAGC authors

dnl TAGC_EXECUTOR
dnl Can the C++ compiler build the tests' executor of GPU kernels (tests/executor), and the C compiler link it? Its flags
dnl are those of the C code as far as they decide about bits and sanitizers.
AC_DEFUN([TAGC_EXECUTOR], [
  EXECUTOR_CXXFLAGS='-std=c++17 -g -ffp-contract=off -fno-exceptions -fno-rtti -Wall -Wextra'
  AS_IF([test "$enable_werror" = yes], [AS_VAR_APPEND([EXECUTOR_CXXFLAGS], [" -Werror"])])
  dnl Sanitized, -O2 takes half as long again to compile as -O1
  AS_IF([test "$enable_sanitizers" = no], [AS_VAR_APPEND([EXECUTOR_CXXFLAGS], [" -O2"])],
        [AS_VAR_APPEND([EXECUTOR_CXXFLAGS], [" -O1 -fsanitize=$enable_sanitizers -fno-sanitize-recover=all"])])
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

dnl TAGC_GPU(NAME, PREFIX, COMPILER, WHERE, LIBRARY, HEADER, CALL, SUFFIX)
dnl What CUDA and HIP share: finds COMPILER under --with-NAME=DIR, on the PATH or under WHERE, tries it on a kernel with
dnl PREFIX_FLAGS, and the library's header and LIBRARY on the C compiler. No device is looked for: where one builds there
dnl may be none. Sets tagc_NAME to yes or no, and tagc_NAME_why.
AC_DEFUN([TAGC_GPU], [
  tagc_$1=no tagc_$1_why='not wanted' tagc_$1_root=
  AS_IF([test "$with_$1" != no], [
    tagc_$1_why=
    AS_CASE([$with_$1], [yes|check], [tagc_path=$PATH$PATH_SEPARATOR$4/bin], [tagc_path=$with_$1/bin])
    AC_PATH_PROG([$2_COMPILER], [$3], [], [$tagc_path])
    AS_IF([test -z "$$2_COMPILER"],
          [tagc_$1_why="no $3"],
          [tagc_$1_root=`AS_DIRNAME(["$$2_COMPILER"])`/..])])
  AS_IF([test "$with_$1" != no && test -z "$tagc_$1_why"], [
    AC_MSG_CHECKING([whether $$2_COMPILER compiles a kernel])
    cat >conftest_a.$8 <<_TAGC_END
#ifdef __HIP__
#include <hip/hip_runtime.h>
#endif
extern "C" __global__ void tagc_a(int *x) { *x += 1; }
_TAGC_END
    AS_IF([$$2_COMPILER $$2_FLAGS -c conftest_a.$8 -o conftest_a.$ac_objext >&AS_MESSAGE_LOG_FD 2>&1],
          [], [tagc_$1_why="$$2_COMPILER $$2_FLAGS compiles no kernel"])
    rm -f conftest_a.*
    AS_IF([test -z "$tagc_$1_why"], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])])])
  AS_IF([test "$with_$1" != no && test -z "$tagc_$1_why"], [
    tagc_save_CPPFLAGS=$CPPFLAGS tagc_save_LIBS=$LIBS
    AC_MSG_CHECKING([for $6 and lib$5])
    for tagc_lib in '' lib64 lib; do
      tagc_flags=$$2_CPPFLAGS tagc_libs=-l$5
      AS_IF([test -n "$tagc_lib"], [
        tagc_flags="$tagc_flags -isystem $tagc_$1_root/include"
        tagc_libs="-L$tagc_$1_root/$tagc_lib $tagc_libs"])
      CPPFLAGS="$tagc_save_CPPFLAGS $tagc_flags" LIBS="$tagc_libs $tagc_save_LIBS"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <$6>]], [[int n; (void)$7(&n);]])], [
        tagc_$1=yes $2_CPPFLAGS=$tagc_flags $2_LIBS=$tagc_libs
        AS_IF([test -n "$tagc_lib"], [$2_LIBS="-R`cd $tagc_$1_root/$tagc_lib && pwd` $$2_LIBS"])
        break])
    done
    CPPFLAGS=$tagc_save_CPPFLAGS LIBS=$tagc_save_LIBS
    AC_MSG_RESULT([$tagc_$1])
    AS_IF([test $tagc_$1 = no], [tagc_$1_why="$6 and lib$5 are not found"])])
  AS_CASE([$tagc_$1-$with_$1],
    [no-no|no-check], [],
    [no-*], [AC_MSG_ERROR([--with-$1 was given: $tagc_$1_why])])
  AC_SUBST([$2_COMPILER])
  AC_SUBST([$2_FLAGS])
  AC_SUBST([$2_CPPFLAGS])
  AC_SUBST([$2_LIBS])
  dnl A static library has its backends linked in; a shared one loads them
  AS_IF([test $tagc_$1 = yes && test "$enable_shared" != yes],
        [AC_DEFINE([TAGC_LINK_]m4_toupper([$1]), [1], [the $1 backend is linked in])
         AS_VAR_APPEND([GPU_PC_LIBS], [" `AS_ECHO([" $$2_LIBS"]) | sed 's/ -R/ -Wl,-rpath,/g'`"])])
  AM_CONDITIONAL([HAVE_]m4_toupper([$1]), [test $tagc_$1 = yes])
])

AC_DEFUN([TAGC_CUDA], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@], [build the CUDA backend, with DIR/bin/nvcc [check]])],
              [], [with_cuda=check])
  AC_ARG_WITH([cuda-arch], [AS_HELP_STRING([--with-cuda-arch=LIST],
              [for these, as in 80,90 (code for each, and what later ones can compile of the last) [all-major]])],
              [], [with_cuda_arch=all-major])
  dnl No contraction, no flushing, correct division: the bits of every other backend
  CUDA_FLAGS='--threads 0 -std=c++17 -O3 -fmad=false -ftz=false -prec-div=true -fno-exceptions -fno-rtti -fno-threadsafe-statics'
  AS_CASE([$with_cuda_arch],
    [all|all-major|native], [CUDA_FLAGS="$CUDA_FLAGS -arch=$with_cuda_arch"],
    [ for tagc_arch in `AS_ECHO(["$with_cuda_arch"]) | tr , ' '`; do
        tagc_arch=${tagc_arch#sm_}
        CUDA_FLAGS="$CUDA_FLAGS -gencode arch=compute_$tagc_arch,code=sm_$tagc_arch"
      done
      CUDA_FLAGS="$CUDA_FLAGS -gencode arch=compute_$tagc_arch,code=compute_$tagc_arch"])
  tagc_save_CUDA_FLAGS=$CUDA_FLAGS
  dnl backends/cuda/nvcc-lt.sh hands the flags of the host compiler on; here they are handed on by hand
  CUDA_FLAGS=`AS_ECHO(["$CUDA_FLAGS"]) | sed 's/ \(-fno-[[a-z-]]*\)/ --compiler-options=\1/g'`
  TAGC_GPU([cuda], [CUDA], [nvcc], [/usr/local/cuda], [cudart], [cuda_runtime_api.h], [cudaGetDeviceCount], [cu])
  CUDA_FLAGS=$tagc_save_CUDA_FLAGS
])

AC_DEFUN([TAGC_HIP], [
  AC_ARG_WITH([hip], [AS_HELP_STRING([--with-hip@<:@=DIR@:>@], [build the HIP backend, with DIR/bin/hipcc [check]])],
              [], [with_hip=check])
  AC_ARG_WITH([hip-arch], [AS_HELP_STRING([--with-hip-arch=LIST], [for these @<:@gfx90a,gfx1030@:>@])],
              [], [with_hip_arch=gfx90a,gfx1030])
  HIP_FLAGS='-std=c++17 -O3 -ffp-contract=off -fhip-fp32-correctly-rounded-divide-sqrt -fno-exceptions -fno-rtti'
  for tagc_arch in `AS_ECHO(["$with_hip_arch"]) | tr , ' '`; do
    HIP_FLAGS="$HIP_FLAGS --offload-arch=$tagc_arch"
  done
  HIP_CPPFLAGS=-D__HIP_PLATFORM_AMD__
  TAGC_GPU([hip], [HIP], [hipcc], [/opt/rocm], [amdhip64], [hip/hip_runtime_api.h], [hipGetDeviceCount], [hip])
])
