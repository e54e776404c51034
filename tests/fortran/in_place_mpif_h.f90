! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) the TAGC authors
!
! mpif.h: MPI_IN_PLACE has an address of its own there.
program in_place_mpif_h
    use tagc_f08
    use checks
    implicit none
    include 'mpif.h'
    integer, parameter :: part = 7
    integer :: ranks, total, code, i
    double precision, allocatable :: values(:)
    double precision :: expected(part)
    type(TAGC_Request) :: request

    call MPI_Init(code)
    call MPI_Comm_rank(MPI_COMM_WORLD, my_rank, code)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
    allocate (values(part * ranks))
    values = [(value(my_rank, i), i=1, part * ranks)]
    do i = 1, part
        expected(i) = sum([(value(total, i + part * my_rank), total=0, ranks - 1)])
    end do
    call TAGC_Reduce_scatter_block(MPI_IN_PLACE, values, part, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, &
        TAGC_TENSOR_NULL, code)
    step = 'blocking'
    call check(code == MPI_SUCCESS .and. all(values(1:part) == expected), 'not the sum')
    values = [(value(my_rank, i), i=1, part * ranks)]
    call TAGC_Ireduce_scatter_block(MPI_IN_PLACE, values, part, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, &
        TAGC_TENSOR_NULL, request, code)
    call TAGC_Wait(request, code)
    step = 'nonblocking'
    call check(code == MPI_SUCCESS .and. all(values(1:part) == expected), 'not the sum')
    call MPI_Allreduce(failures, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    if (my_rank == 0 .and. total == 0) print *, 'all well'
    call MPI_Finalize(code)
    if (total /= 0) stop 1
end program
