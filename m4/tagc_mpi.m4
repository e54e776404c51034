dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) the TAGC authors

dnl TAGC_MPI
dnl CC has to know MPI: a program that includes mpi.h and calls MPI has to compile and link. Names and flags of the
dnl compiler decide nothing. MPI_CFLAGS and MPI_LIBS help a CC that is not a wrapper.
dnl Sets MPI_NAME, MPI_IMPL (mpich, openmpi, other), MPI_IMPL_VERSION, MPI_PC (pkg-config module or empty),
dnl MPI_PC_LIBS (link flags for static users where there is no module).
AC_DEFUN([TAGC_MPI], [
  AC_ARG_VAR([MPICC], [MPI compiler wrapper, taken as CC if CC is not set])
  AC_ARG_VAR([MPI_CFLAGS], [compiler flags for MPI, for a CC that does not know them])
  AC_ARG_VAR([MPI_LIBS], [linker flags for MPI, for a CC that does not know them])
  AS_IF([test -n "$MPI_CFLAGS"], [CPPFLAGS="$MPI_CFLAGS $CPPFLAGS"])
  AS_IF([test -n "$MPI_LIBS"], [LIBS="$MPI_LIBS $LIBS"])

  AC_CACHE_CHECK([whether $CC compiles and links an MPI program], [tagc_cv_mpi_links], [
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]],
                                    [[int n; MPI_Init(0, 0); MPI_Comm_size(MPI_COMM_WORLD, &n);
                                      MPI_Reduce_scatter_block(MPI_IN_PLACE, &n, 1, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
                                      MPI_Finalize();]])],
                   [tagc_cv_mpi_links=yes], [tagc_cv_mpi_links=no])])
  AS_IF([test "$tagc_cv_mpi_links" != yes], [
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[]])],
                      [tagc_why='mpi.h is found, but a program that calls MPI does not link'],
                      [tagc_why='mpi.h is not found'])
    AC_MSG_ERROR([$tagc_why with CC='$CC'.
  Name an MPI compiler wrapper:      ./configure MPICC=/path/to/mpicc
  or give the flags of an MPI:       ./configure CC=cc MPI_CFLAGS=-I... MPI_LIBS='-L... -lmpi'
  On Debian and Ubuntu, one comes with:  apt install mpich libmpich-dev
  config.log has the compiler's messages.])])

  AC_CACHE_CHECK([for MPI 3.0 or later], [tagc_cv_mpi3], [
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[
#if MPI_VERSION < 3
#error too old
#endif
      ]])], [tagc_cv_mpi3=yes], [tagc_cv_mpi3=no])])
  AS_IF([test "$tagc_cv_mpi3" != yes], [AC_MSG_ERROR([this MPI is older than MPI 3.0])])

  AC_CACHE_CHECK([which MPI this is], [tagc_cv_mpi_impl], [
    AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <mpi.h>
#ifndef OPEN_MPI
#error no
#endif
      ]])], [tagc_cv_mpi_impl=openmpi], [
      AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <mpi.h>
#ifndef MPICH_VERSION
#error no
#endif
        ]])], [tagc_cv_mpi_impl=mpich], [tagc_cv_mpi_impl=other])])])
  MPI_IMPL=$tagc_cv_mpi_impl
  AC_CACHE_CHECK([for the version of MPI], [tagc_cv_mpi_version], [
    cat >conftest.c <<\_TAGC
#include <mpi.h>
#ifdef OPEN_MPI
tagc_version OMPI_MAJOR_VERSION . OMPI_MINOR_VERSION . OMPI_RELEASE_VERSION
#elif defined I_MPI_VERSION
tagc_version I_MPI_VERSION
#elif defined MPICH_VERSION
tagc_version MPICH_VERSION
#endif
_TAGC
    tagc_cv_mpi_version=`$CC -E $CPPFLAGS conftest.c 2>/dev/null | sed -n 's/^tagc_version//p' | tr -d '" '`
    rm -f conftest.c
    test -n "$tagc_cv_mpi_version" || tagc_cv_mpi_version=unknown])
  MPI_IMPL_VERSION=$tagc_cv_mpi_version
  AS_CASE([$MPI_IMPL], [mpich], [MPI_NAME=MPICH], [openmpi], [MPI_NAME='Open MPI'], [MPI_NAME='unknown MPI'])
  dnl It is of MPICH's kind, and its header says so too
  AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <mpi.h>
#ifndef I_MPI_VERSION
#error no
#endif
    ]])], [MPI_NAME='Intel MPI'])
  AC_DEFINE_UNQUOTED([TAGC_BUILD_MPI], ["$MPI_NAME $MPI_IMPL_VERSION"], [MPI of the build, by its header])

  dnl Users who link statically need MPI's own flags: by its pkg-config module, if that is this MPI, else as CC says.
  MPI_PC= MPI_PC_LIBS=$MPI_LIBS
  AS_CASE([$MPI_IMPL], [mpich], [tagc_try=mpich], [openmpi], [tagc_try='ompi-c'], [tagc_try=])
  AS_IF([test -n "$PKG_CONFIG" && test -n "$tagc_try" && test -z "$MPI_LIBS"], [
    AC_MSG_CHECKING([for the pkg-config module of this MPI])
    AS_IF([test x"`$PKG_CONFIG --modversion $tagc_try 2>/dev/null`" = x"$MPI_IMPL_VERSION"],
          [MPI_PC=$tagc_try])
    AC_MSG_RESULT([${MPI_PC:-none}])])
  AS_IF([test -z "$MPI_PC" && test -z "$MPI_LIBS"], [
    dnl what the wrapper adds, if it can say so
    for tagc_word in `($CC -show || $CC --showme) 2>/dev/null`; do
      AS_CASE([$tagc_word], [-L*|-l*|-Wl,-rpath*], [AS_VAR_APPEND([MPI_PC_LIBS], [" $tagc_word"])])
    done])
  AC_SUBST([MPI_PC])
  AC_SUBST([MPI_PC_LIBS])
  AC_SUBST([MPI_NAME])
  AC_SUBST([MPI_IMPL])

  dnl What only newer or some MPIs have
  tagc_mpi_has=
  AC_CHECK_FUNCS([MPI_Reduce_scatter_c], [
    AC_CHECK_FUNCS([MPI_Allreduce_c MPI_Iallreduce_c MPI_Ireduce_scatter_c], [], [tagc_lc=no])
    AS_IF([test x"$tagc_lc" != xno], [
      AC_DEFINE([HAVE_MPI_LARGE_COUNT], [1], [MPI has the functions with MPI_Count counts (MPI-4)])
      AS_VAR_APPEND([tagc_mpi_has], [", large counts"])])])
  AC_CHECK_FUNCS([MPI_Allreduce_init], [
    AC_DEFINE([HAVE_MPI_PERSISTENT_COLLECTIVES], [1], [MPI has persistent collectives (MPI-4)])
    AS_VAR_APPEND([tagc_mpi_has], [", persistent collectives"])])
  AC_CHECK_FUNCS([MPI_Comm_idup_with_info MPI_Session_init])
  dnl MPIX_ functions stand in mpi.h or in a header of their own; a declaration has to be there too.
  AC_CHECK_HEADERS([mpi-ext.h], [], [], [[#include <mpi.h>]])
  AC_CACHE_CHECK([for MPIX_Grequest_start], [tagc_cv_grequest], [
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>
#ifdef HAVE_MPI_EXT_H
#include <mpi-ext.h>
#endif
static int q(void *s, MPI_Status *t) { (void)s; (void)t; return 0; }
static int f(void *s) { (void)s; return 0; }
static int c(void *s, int d) { (void)s; (void)d; return 0; }
static int p(void *s, MPI_Status *t) { (void)s; (void)t; return 0; }
static int w(int n, void **s, double o, MPI_Status *t) { (void)n; (void)s; (void)o; (void)t; return 0; }
]], [[MPI_Request r; return MPIX_Grequest_start(q, f, c, p, w, 0, &r);]])],
                   [tagc_cv_grequest=yes], [tagc_cv_grequest=no])])
  AS_IF([test "$tagc_cv_grequest" = yes], [
    AC_DEFINE([HAVE_MPIX_GREQUEST_START], [1], [MPI offers MPIX_Grequest_start])
    AS_VAR_APPEND([tagc_mpi_has], [", MPIX_Grequest_start"])])
  dnl Whether MPI takes device pointers is asked at run time, if it can be asked
  AC_CHECK_DECLS([MPIX_GPU_query_support, MPIX_Query_cuda_support, MPIX_Query_rocm_support, MPIX_Query_hip_support],
                 [], [], [[#include <mpi.h>
#ifdef HAVE_MPI_EXT_H
#include <mpi-ext.h>
#endif
]])
  tagc_mpi_has=`echo "$tagc_mpi_has" | sed 's/^, //'`
])

dnl TAGC_MPIEXEC
dnl The launcher for the tests: --with-mpiexec, else the one that stands beside the compiler wrapper, else one that fits
dnl the MPI by name. One that belongs to another MPI than the header is not used: every rank would be alone.
AC_DEFUN([TAGC_MPIEXEC], [
  AC_ARG_WITH([mpiexec],
    [AS_HELP_STRING([--with-mpiexec=CMD], [MPI launcher of the tests, called as CMD -n N PROGRAM [found by name]])],
    [MPIEXEC=$withval], [MPIEXEC=])
  AS_CASE([$MPIEXEC], [no], [MPIEXEC=], [yes],
          [AC_MSG_ERROR([--with-mpiexec wants a command, as in --with-mpiexec=/opt/mpi/bin/mpiexec])])
  tagc_mpiexec_asked=$MPIEXEC
  AS_IF([test -z "$MPIEXEC" && test x"$with_mpiexec" != xno], [
    AS_CASE([$MPI_IMPL], [mpich],   [tagc_names='mpiexec.mpich mpiexec.hydra mpiexec mpirun'],
                         [openmpi], [tagc_names='mpiexec.openmpi mpirun.openmpi mpiexec mpirun'],
                                    [tagc_names='mpiexec mpirun'])
    set dummy $CC
    tagc_dir=`AS_DIRNAME(["$[]2"])`
    AS_CASE([$[]2], [*/*], [], [tagc_dir=])
    AC_PATH_PROGS([MPIEXEC_FOUND], [$tagc_names], [], [${tagc_dir:+$tagc_dir$PATH_SEPARATOR}$PATH])
    MPIEXEC=$MPIEXEC_FOUND])
  AC_SUBST([MPIEXEC])
  MPIEXEC_FITS=unknown
  AS_IF([test -n "$MPIEXEC" && test "$cross_compiling" != yes], [
    AC_MSG_CHECKING([which MPI $MPIEXEC belongs to])
    tagc_says=`$MPIEXEC --version 2>&1 </dev/null | head -n 20`
    AS_CASE([$tagc_says], [*HYDRA*], [tagc_of=mpich], [*Open?MPI*|*OpenRTE*|*open-mpi*], [tagc_of=openmpi],
            [tagc_of=unknown])
    AS_IF([test $tagc_of != unknown && test $MPI_IMPL != other],
          [AS_IF([test $tagc_of = $MPI_IMPL], [MPIEXEC_FITS=yes], [MPIEXEC_FITS=no])])
    AC_MSG_RESULT([$tagc_of])])
  MPIEXEC_NAMED=$MPIEXEC
  AS_IF([test $MPIEXEC_FITS = no], [MPIEXEC=])
])
