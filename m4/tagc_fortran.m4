dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) the TAGC authors

dnl TAGC_FC
dnl Chooses FC, before AC_PROG_FC and after TAGC_MPI; "no" where there is none.
AC_DEFUN([TAGC_FC], [
  AC_ARG_ENABLE([fortran],
    [AS_HELP_STRING([--enable-fortran], [the Fortran module tagc_f08 [where a compiler is found]])],
    [], [enable_fortran=check])
  AC_ARG_WITH([moddir],
    [AS_HELP_STRING([--with-moddir=DIR], [folder of tagc_f08.mod [INCLUDEDIR]])],
    [moddir=$withval], [moddir='${includedir}'])
  AS_CASE([$moddir], [yes|no|''], [AC_MSG_ERROR([--with-moddir wants a folder])])
  AC_SUBST([moddir])
  AC_ARG_VAR([MPIFC], [MPI compiler wrapper for Fortran, taken as FC if FC is not set])

  AS_IF([test "$enable_fortran" = no], [FC=no],
        [test -z "$FC" && test -n "$MPIFC"], [FC=$MPIFC],
        [test -z "$FC"], [
    AS_CASE([$MPI_IMPL], [mpich],   [tagc_names='mpifort.mpich mpifort mpif90'],
                         [openmpi], [tagc_names='mpifort.openmpi mpifort mpif90'],
                                    [tagc_names='mpifort mpiifx mpiifort mpif90 ftn'])
    set dummy $CC
    tagc_dir=`AS_DIRNAME(["$[]2"])`
    AS_CASE([$[]2], [*/*], [], [tagc_dir=])
    AC_PATH_PROGS([tagc_fc], [$tagc_names], [no], [${tagc_dir:+$tagc_dir$PATH_SEPARATOR}$PATH])
    FC=$tagc_fc])
  AS_IF([test -z "$FCFLAGS"], [
    AS_IF([test "$enable_debug" = yes || test "$enable_coverage" = yes], [FCFLAGS='-Og -g'], [FCFLAGS='-O2 -g'])])
])

dnl TAGC_FORTRAN
dnl The module tagc_f08: --enable-fortran, by default where a Fortran compiler of this MPI is found. Sets tagc_fortran (yes,
dnl or no with the reason in tagc_fortran_why), tagc_fortran_has, FORTRAN_CPPFLAGS (-D for what the MPI has),
dnl FORTRAN_CFLAGS (for the C side), FORTRAN_LDFLAGS, moddir. Comes after AC_PROG_FC.
AC_DEFUN([TAGC_FORTRAN], [
  tagc_fortran=no tagc_fortran_why= tagc_fortran_has= FORTRAN_CPPFLAGS= FORTRAN_CFLAGS= FC_MODINC= FC_MODOUT=
  tagc_f08=no tagc_mpi_mod=no tagc_mpif_h=no
  AS_IF([test "$enable_fortran" = no], [tagc_fortran_why='--disable-fortran'],
        [test "$FC" = no || test -z "$FC"], [tagc_fortran_why='no Fortran compiler of this MPI found (see MPIFC)'],
        [_TAGC_FORTRAN_PROBE])
  AS_IF([test "$tagc_fortran" = no && test "$enable_fortran" = yes],
        [AC_MSG_ERROR([--enable-fortran, but: $tagc_fortran_why
  config.log has the compiler's messages.])])
  AS_IF([test "$tagc_fortran" = no && test "$enable_fortran" = check && test "$FC" != no],
        [AC_MSG_WARN([no Fortran module: $tagc_fortran_why])])
  dnl The wrapper for Fortran may find another MPI's libmpi.so (Debian's, where MPICH is the default): C's folders first
  FORTRAN_LDFLAGS=
  AS_IF([test "$tagc_fortran" = yes && test "$MPI_IMPL" = openmpi], [
    for tagc_word in `($CC -show || $CC --showme) 2>/dev/null`; do
      AS_CASE([$tagc_word], [-L*], [AS_VAR_APPEND([FORTRAN_LDFLAGS], ["${FORTRAN_LDFLAGS:+ }$tagc_word"])])
    done])
  AC_SUBST([FORTRAN_LDFLAGS])
  AC_SUBST([FORTRAN_CPPFLAGS])
  AC_SUBST([FORTRAN_CFLAGS])
  AM_CONDITIONAL([BUILD_FORTRAN], [test "$tagc_fortran" = yes])
  AM_CONDITIONAL([FORTRAN_MPI_F08], [test "$tagc_f08" = yes])
  AM_CONDITIONAL([FORTRAN_MPI_MOD], [test "$tagc_mpi_mod" = yes])
  AM_CONDITIONAL([FORTRAN_MPIF_H], [test "$tagc_mpif_h" = yes])
])

dnl _TAGC_FORTRAN_TRY(VARIABLE, QUESTION, DECLARATIONS, STATEMENTS)
dnl Compiles and links a program; VARIABLE is yes or no.
AC_DEFUN([_TAGC_FORTRAN_TRY], [
  AC_MSG_CHECKING([$2])
  AC_LINK_IFELSE([AC_LANG_SOURCE([[
program conftest
$3
$4
end program
]])], [$1=yes], [$1=no])
  AC_MSG_RESULT([$$1])
])

AC_DEFUN([_TAGC_FORTRAN_PROBE], [
  AC_LANG_PUSH([Fortran])
  AC_FC_SRCEXT([f90], [], [tagc_fortran_why="$FC does not compile a .f90 file"])
  AS_IF([test -z "$tagc_fortran_why"], [
    AC_FC_MODULE_FLAG([], [tagc_fortran_why="no flag of $FC for module folders is known"])])
  AS_IF([test -z "$tagc_fortran_why"], [
    AC_FC_MODULE_OUTPUT_FLAG([], [tagc_fortran_why="no flag of $FC for the place of module files is known"])])

  dnl Fortran 2018: descriptors of any type and rank, optional arguments
  AS_IF([test -z "$tagc_fortran_why"], [
    _TAGC_FORTRAN_TRY([tagc_ok], [whether $FC passes buffers of any type and rank, and default integers are C's],
[  use, intrinsic :: iso_c_binding
  implicit none
  interface
    function f(x) bind(C, name="memcpy") result(code)
      import
      type(*), dimension(..), intent(in), asynchronous :: x
      integer(c_int) :: code
    end function
  end interface
  real :: a(2)
  integer, parameter :: same = 1 / merge(1, 0, kind(0) == c_int)],
[  if (same == 2) print *, f(a)])
    AS_IF([test "$tagc_ok" = no], [tagc_fortran_why="$FC does not know type(*), dimension(..), or its integers are not C's"])])

  dnl Its header for C
  AS_IF([test -z "$tagc_fortran_why"], [
    AC_LANG_PUSH([C])
    AC_MSG_CHECKING([for ISO_Fortran_binding.h])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <ISO_Fortran_binding.h>]], [[CFI_cdesc_t *d = 0; (void)d;]])],
                      [tagc_ok=yes], [tagc_ok=no])
    AS_IF([test $tagc_ok = no], [
      tagc_header=`$FC -print-file-name=include/ISO_Fortran_binding.h 2>/dev/null`
      AS_IF([test -r "$tagc_header"], [
        FORTRAN_CFLAGS="-idirafter `AS_DIRNAME(["$tagc_header"])`"
        tagc_save_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS $FORTRAN_CFLAGS"
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <ISO_Fortran_binding.h>]], [[CFI_cdesc_t *d = 0; (void)d;]])],
                          [tagc_ok=yes])
        CFLAGS=$tagc_save_CFLAGS])])
    AC_MSG_RESULT([$tagc_ok${FORTRAN_CFLAGS:+, with $FORTRAN_CFLAGS}])
    AC_LANG_POP([C])
    AS_IF([test $tagc_ok = no], [tagc_fortran_why="$CC does not find the ISO_Fortran_binding.h of $FC"])])
  AS_IF([test -z "$tagc_fortran_why" && test "$ac_cv_sizeof_MPI_Count" != 8],
        [tagc_fortran_why="MPI_Count has $ac_cv_sizeof_MPI_Count bytes, the module wants 8"])

  dnl MPI in Fortran, and the same as C's
  AS_IF([test -z "$tagc_fortran_why"], [
    AS_CASE([$MPI_IMPL], [mpich], [tagc_is='MPI_COMM_WORLD == 1140850688'], [openmpi], [tagc_is='MPI_COMM_WORLD == 0'],
            [tagc_is='.true.'])
    tagc_call='call MPI_Init(i); call MPI_Finalize(i)'
    _TAGC_FORTRAN_TRY([tagc_mpif_h], [whether $FC knows this MPI by mpif.h],
[  implicit none
  include 'mpif.h'
  integer :: i
  integer, parameter :: same = 1 / merge(1, 0, $tagc_is)], [$tagc_call])
    _TAGC_FORTRAN_TRY([tagc_mpi_mod], [whether $FC knows this MPI by use mpi],
[  use mpi
  implicit none
  integer :: i
  integer, parameter :: same = 1 / merge(1, 0, $tagc_is)], [$tagc_call])
    _TAGC_FORTRAN_TRY([tagc_f08], [whether $FC knows this MPI by use mpi_f08],
[  use mpi_f08
  implicit none
  integer, parameter :: same = 1 / merge(1, 0, MPI_COUNT_KIND == 8)
  type(MPI_Comm) :: c], [  call MPI_Init(); c = MPI_COMM_WORLD; print *, c%MPI_VAL; call MPI_Finalize()])
    AS_IF([test $tagc_f08 = no], [_TAGC_FORTRAN_WHOSE_MODULE])
    AS_IF([test $tagc_mpif_h$tagc_mpi_mod = nono], [
      tagc_fortran_why="$FC does not know the MPI of $CC${tagc_whose:+; $tagc_whose}"])])
  AC_LANG_POP([Fortran])

  AS_IF([test -z "$tagc_fortran_why"], [
    tagc_fortran=yes
    AS_IF([test $tagc_f08 = yes], [
           tagc_fortran_has=mpi_f08
           AS_VAR_APPEND([FORTRAN_CPPFLAGS], [" -DTAGCF_MPI_F08"])],
          [AC_MSG_WARN([tagc_f08 comes without the handles of mpi_f08, only with integer ones: ${tagc_whose:-$FC cannot use mpi_f08}])])
    AS_IF([test $tagc_mpi_mod = yes], [AS_VAR_APPEND([FORTRAN_CPPFLAGS], [" -DTAGCF_MPI"])
           AS_VAR_APPEND([tagc_fortran_has], ["${tagc_fortran_has:+, }mpi"])])
    AS_IF([test $tagc_mpif_h = yes], [AS_VAR_APPEND([FORTRAN_CPPFLAGS], [" -DTAGCF_MPIF_H"])
           AS_VAR_APPEND([tagc_fortran_has], ["${tagc_fortran_has:+, }mpif.h"])])
    AS_IF([test $tagc_f08 = no && test -n "$tagc_whose"], [AS_VAR_APPEND([tagc_fortran_has], ["; $tagc_whose"])])])
])

dnl _TAGC_FORTRAN_WHOSE_MODULE
dnl mpi_f08 cannot be used. If there is a module file, tagc_whose says which compiler wrote it and which one was to read it.
AC_DEFUN([_TAGC_FORTRAN_WHOSE_MODULE], [
  tagc_whose='there is no mpi_f08.mod'
  tagc_version_of() { (gzip -dc "$[]1" || cat "$[]1") 2>/dev/null | LC_ALL=C tr -cd ' -~\n' | sed "s/ created from.*//; q" | cut -c1-60; }
  for tagc_word in $FCFLAGS `($FC -show || $FC --showme) 2>/dev/null` $CPPFLAGS; do
    AS_CASE([$tagc_word], [-I*|-J*], [
      tagc_file=`AS_ECHO(["$tagc_word"]) | sed 's/^-.//'`/mpi_f08.mod
      AS_IF([test -r "$tagc_file"], [
        cat >conftest.f90 <<\_TAGC
module conftest_own
end module
_TAGC
        tagc_own=
        $FC -c $FCFLAGS conftest.f90 >&AS_MESSAGE_LOG_FD 2>&1
        for tagc_mod in conftest_own.mod CONFTEST_OWN.mod; do
          AS_IF([test -r $tagc_mod], [tagc_own=`tagc_version_of $tagc_mod`])
        done
        rm -f conftest.f90 conftest.o conftest_own.mod CONFTEST_OWN.mod
        tagc_fc_version=`$FC --version 2>/dev/null | sed q`
        tagc_whose="$tagc_file is of another compiler ('`tagc_version_of "$tagc_file"`') than $FC ($tagc_fc_version: '$tagc_own')"
        break])])
  done
])
