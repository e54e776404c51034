! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) the TAGC authors
subroutine tagcf_ask_mpif_h() bind(C, name="tagcf_ask_mpif_h")
    implicit none
    interface
        subroutine know(in_place, bottom) bind(C, name="tagcf_know")
            type(*) :: in_place, bottom
        end subroutine
    end interface
    include 'mpif.h'
    call know(MPI_IN_PLACE, MPI_BOTTOM)
end subroutine
