! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) the TAGC authors
!
! What the Fortran tests share; knows no MPI, so that it serves all of its modules.
module checks
    implicit none
    integer :: failures = 0, my_rank = -1
    character(len=80) :: step = ' '
contains
    subroutine check(condition, what)
        logical, intent(in) :: condition
        character(len=*), intent(in) :: what
        if (condition) return
        failures = failures + 1
        if (failures <= 20) print '(a,i0,4a)', 'rank ', my_rank, ': ', trim(step), ': ', what
    end subroutine

    ! Small integers, so that every order of additions gives the same bits; most are zero
    elemental double precision function value(rank, i)
        integer, intent(in) :: rank, i
        integer :: h
        h = mod(i * 7919 + rank * 104729 + mod(i, 13) * rank, 1009)
        value = merge(dble(mod(h, 17) - 8), 0.0d0, mod(h, 10) < 3)
    end function
end module
