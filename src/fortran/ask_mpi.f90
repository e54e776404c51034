! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) the TAGC authors
subroutine tagcf_ask_mpi() bind(C, name="tagcf_ask_mpi")
    use mpi, only: MPI_IN_PLACE, MPI_BOTTOM
    implicit none
    interface
        subroutine know(in_place, bottom) bind(C, name="tagcf_know")
            type(*) :: in_place, bottom
        end subroutine
    end interface
    call know(MPI_IN_PLACE, MPI_BOTTOM)
end subroutine
