! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) the TAGC authors
!
! use mpi: integer handles, the same names.
program handles_mpi
    use mpi
    use tagc_f08
    use checks
    implicit none
    integer, parameter :: part = 50
    integer :: ranks, total, code, i, info, used, half, average, class, form
    integer(MPI_COUNT_KIND) :: wide
    real(4), allocatable, asynchronous :: send(:), recv(:)
    real(4) :: expected(part)
    double precision, allocatable :: send8(:), recv8(:)
    double precision :: expected8(part), calls
    integer, allocatable :: counts(:)
    type(TAGC_Tensor) :: tensor
    type(TAGC_Request) :: request
    character(len=20) :: setting
    logical :: found

    call MPI_Init(code)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, code)
    call MPI_Comm_rank(MPI_COMM_WORLD, my_rank, code)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
    allocate (send(part * ranks), recv(part * ranks), send8(part * ranks), recv8(part * ranks), counts(ranks))
    send = [(real(value(my_rank, i)), i=1, part * ranks)]
    send8 = send
    counts = part
    wide = part
    call MPI_Reduce_scatter_block(send, expected, part, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, code)
    expected8 = expected

    call MPI_Info_create(info, code)
    call MPI_Info_set(info, 'tagc_algorithm', 'direct', code)
    call MPI_Info_set(info, 'tagc_min_count', '0', code)
    call TAGC_Tensor_create(MPI_COMM_WORLD, 'integer handles', part * ranks, MPI_REAL, info, tensor, code)
    call check(code == MPI_SUCCESS, 'create')
    call TAGC_Tensor_get_info(tensor, used)
    call MPI_Info_get(used, 'tagc_algorithm', len(setting), setting, found, code)
    call check(found .and. setting == 'direct', 'setting in force')
    call MPI_Info_free(used, code)
    call MPI_Info_free(info, code)

    do form = 1, 10
        write (step, '(a, i0)') 'form ', form
        recv = -1
        recv8 = -1
        if (form > 5) recv = send
        if (form > 5) recv8 = send8
        select case (form)
        case (1)
            call TAGC_Reduce_scatter(send, recv, counts, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, code)
        case (2)
            call TAGC_Reduce_scatter_block(send, recv, wide, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, code)
        case (3)
            call TAGC_Ireduce_scatter_block(send, recv, part, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, &
                request, code)
            call TAGC_Wait(request, code)
        case (4)
            call TAGC_Reduce_scatter_init(send, recv, counts, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, MPI_INFO_NULL, &
                request, code)
            call TAGC_Start(request, code)
            call TAGC_Wait(request, code)
            call TAGC_Request_free(request, code)
        case (5)
            call TAGC_Reduce_scatter_block(send8, recv8, part, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, &
                TAGC_TENSOR_NULL, code)
            recv = real(recv8)
        case (6)
            call TAGC_Reduce_scatter(MPI_IN_PLACE, recv, counts, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, code)
        case (7)
            call TAGC_Reduce_scatter_block(MPI_IN_PLACE, recv, wide, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, code)
        case (8)
            call TAGC_Ireduce_scatter_block(MPI_IN_PLACE, recv, part, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, &
                TAGC_TENSOR_NULL, request, code)
            call TAGC_Wait(request, code)
        case (9)
            call TAGC_Reduce_scatter_init(MPI_IN_PLACE, recv, counts, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, &
                MPI_INFO_NULL, request, code)
            call TAGC_Start(request, code)
            call TAGC_Wait(request, code)
            call TAGC_Request_free(request, code)
        case (10)
            call TAGC_Reduce_scatter_block(MPI_IN_PLACE, recv8, part, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, &
                TAGC_TENSOR_NULL, code)
            recv = real(recv8)
        end select
        call check(code == MPI_SUCCESS, 'an error')
        call check(all(recv(1:part) == expected), 'not what MPI gives')
    end do

    step = 'the rest'
    call TAGC_Get_stat(tensor, TAGC_STAT_CALLS, calls)
    call check(calls == 6, 'calls')
    call TAGC_Tensor_free(tensor)
    call TAGC_Allreduce(send(1:part:2), recv, 3, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, code)
    call TAGC_Error_class(code, class)
    call check(class == MPI_ERR_BUFFER, 'a section with a stride')
    call TAGC_Predefined_bfloat16(half)
    call MPI_Type_size(half, i, code)
    call check(i == 2, 'bfloat16')
    call TAGC_Predefined_avg(average, code)
    call TAGC_Reduce_scatter_block(send, recv, part, MPI_REAL, average, MPI_COMM_WORLD, TAGC_TENSOR_NULL)
    call check(all(recv(1:part) == expected / ranks), 'average')
    call TAGC_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, counts, 1, MPI_INTEGER, MPI_COMM_WORLD, TAGC_TENSOR_NULL, code)
    call check(code == MPI_SUCCESS .and. all(counts == part), 'gather of integers in place')

    call MPI_Allreduce(failures, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    if (my_rank == 0 .and. total == 0) print *, 'all well'
    call MPI_Finalize(code)
    if (total /= 0) stop 1
end program
