! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) the TAGC authors
!
! mpi_f08: every form of the reductions against MPI, for real(4), real(8) and double precision in one program, with default
! and MPI_COUNT_KIND counts, in place and not, without a tensor and with one.
program forms_f08
    use mpi_f08
    use tagc_f08
    use checks
    implicit none
    integer, parameter :: blocking = 1, nonblocking = 2, persistent = 3, forms = 3
    integer :: ranks, form, large, in_place, with_tensor, total
    character(len=11), parameter :: form_name(forms) = [character(len=11) :: 'blocking', 'nonblocking', 'persistent']
    character(len=32) :: algorithm

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, my_rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call get_command_argument(1, algorithm)
    do with_tensor = 0, 1
        do in_place = 0, 1
            do form = 1, forms
                do large = 0, 1
                    call allreduce_4(1003)
                    call allreduce_8(517)
                    call reduce_scatter_4()
                    call reduce_scatter_8()
                    call block_4(129)
                    call block_8(64)
                end do
            end do
        end do
    end do
    call no_elements()
    call large_rank()
    call MPI_Allreduce(failures, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (my_rank == 0 .and. total == 0) print *, 'all well'
    call MPI_Finalize()
    if (total /= 0) stop 1

contains

    subroutine named(what)
        character(len=*), intent(in) :: what
        step = what//', '//form_name(form)
        if (large == 1) step = trim(step)//', large counts'
        if (in_place == 1) step = trim(step)//', in place'
        if (with_tensor == 1) step = trim(step)//', tensor'
    end subroutine

    subroutine make(tensor, n, datatype)
        type(TAGC_Tensor), intent(out) :: tensor
        integer, intent(in) :: n
        type(MPI_Datatype), intent(in) :: datatype
        type(MPI_Info) :: info
        tensor = TAGC_TENSOR_NULL
        if (with_tensor == 0) return
        call MPI_Info_create(info)
        if (algorithm /= ' ') call MPI_Info_set(info, 'tagc_algorithm', trim(algorithm))
        call MPI_Info_set(info, 'tagc_min_count', '0')
        if (large == 1) then
            call TAGC_Tensor_create(MPI_COMM_WORLD, 'fortran  ', int(n, MPI_COUNT_KIND), datatype, info, tensor)
        else
            call TAGC_Tensor_create(MPI_COMM_WORLD, 'fortran  ', n, datatype, info, tensor)
        end if
        call MPI_Info_free(info)
        call check(tensor /= TAGC_TENSOR_NULL, 'no tensor')
    end subroutine

    subroutine drop(tensor)
        type(TAGC_Tensor), intent(inout) :: tensor
        if (tensor == TAGC_TENSOR_NULL) return
        call TAGC_Tensor_free(tensor)
        call check(tensor == TAGC_TENSOR_NULL, 'a freed tensor is not null')
    end subroutine

    ! Completes the request, in three ways in turn
    subroutine complete(request)
        type(TAGC_Request), intent(inout) :: request
        type(TAGC_Request) :: both(2)
        logical :: flag
        call check(request /= TAGC_REQUEST_NULL, 'no request')
        if (form == persistent) then
            if (large == 1) then
                call TAGC_Start(request)
            else
                both = [request, request]
                call TAGC_Startall(1, both)
            end if
        end if
        select case (mod(in_place + 2 * large, 3))
        case (0)
            call TAGC_Wait(request)
        case (1)
            both = [request, TAGC_REQUEST_NULL]
            call TAGC_Waitall(2, both)
            request = both(1)
        case default
            flag = .false.
            do while (.not. flag)
                call TAGC_Test(request, flag)
            end do
        end select
        if (form == nonblocking) call check(request == TAGC_REQUEST_NULL, 'a completed request is not null')
    end subroutine

    subroutine finish(request)
        type(TAGC_Request), intent(inout) :: request
        if (form /= persistent) return
        call check(request /= TAGC_REQUEST_NULL, 'a persistent request went')
        call TAGC_Request_free(request)
        call check(request == TAGC_REQUEST_NULL, 'a freed request is not null')
    end subroutine

    subroutine allreduce_4(n)
        integer, intent(in) :: n
        real(4), asynchronous :: send(n), recv(n)
        real(4) :: expected(n)
        type(TAGC_Tensor) :: tensor
        type(TAGC_Request) :: request
        integer :: round, i
        call named('allreduce real(4)')
        call make(tensor, n, MPI_REAL)
        do round = 1, merge(3, 1, form == persistent)
            send = real([(value(my_rank + round, i), i=1, n)])
            call MPI_Allreduce(send, expected, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD)
            recv(:) = merge(send, -1.0, in_place == 1)
            if (form == blocking) then
                if (in_place == 1 .and. large == 1) then
                    call TAGC_Allreduce(MPI_IN_PLACE, recv, int(n, MPI_COUNT_KIND), MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor)
                else if (in_place == 1) then
                    call TAGC_Allreduce(MPI_IN_PLACE, recv, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor)
                else if (large == 1) then
                    call TAGC_Allreduce(send, recv, int(n, MPI_COUNT_KIND), MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor)
                else
                    call TAGC_Allreduce(send, recv, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor)
                end if
            else if (form == nonblocking) then
                if (in_place == 1 .and. large == 1) then
                    call TAGC_Iallreduce(MPI_IN_PLACE, recv, int(n, MPI_COUNT_KIND), MPI_REAL, MPI_SUM, MPI_COMM_WORLD, &
                        tensor, request)
                else if (in_place == 1) then
                    call TAGC_Iallreduce(MPI_IN_PLACE, recv, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, request)
                else if (large == 1) then
                    call TAGC_Iallreduce(send, recv, int(n, MPI_COUNT_KIND), MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, &
                        request)
                else
                    call TAGC_Iallreduce(send, recv, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, request)
                end if
                call complete(request)
            else
                if (round == 1) then
                    if (in_place == 1 .and. large == 1) then
                        call TAGC_Allreduce_init(MPI_IN_PLACE, recv, int(n, MPI_COUNT_KIND), MPI_REAL, MPI_SUM, &
                            MPI_COMM_WORLD, tensor, MPI_INFO_NULL, request)
                    else if (in_place == 1) then
                        call TAGC_Allreduce_init(MPI_IN_PLACE, recv, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, &
                            MPI_INFO_NULL, request)
                    else if (large == 1) then
                        call TAGC_Allreduce_init(send, recv, int(n, MPI_COUNT_KIND), MPI_REAL, MPI_SUM, MPI_COMM_WORLD, &
                            tensor, MPI_INFO_NULL, request)
                    else
                        call TAGC_Allreduce_init(send, recv, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, &
                            MPI_INFO_NULL, request)
                    end if
                end if
                call complete(request)
            end if
            call check(all(recv == expected), 'not what MPI gives')
        end do
        call finish(request)
        call drop(tensor)
    end subroutine

    ! double precision, and an array of rank 2
    subroutine allreduce_8(n)
        integer, intent(in) :: n
        double precision, allocatable, asynchronous :: send(:, :), recv(:, :)
        double precision, allocatable :: expected(:, :)
        integer(MPI_COUNT_KIND) :: wide
        type(TAGC_Tensor) :: tensor
        type(TAGC_Request) :: request
        integer :: round, i
        call named('allreduce double precision')
        call make(tensor, 2 * n, MPI_DOUBLE_PRECISION)
        wide = 2 * n
        allocate (send(2, n), recv(2, n), expected(2, n))
        do round = 1, merge(3, 1, form == persistent)
            send(:, :) = reshape([(value(my_rank + round, i), i=1, 2 * n)], [2, n])
            call MPI_Allreduce(send, expected, 2 * n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
            recv(:, :) = merge(send, -1.0d0, in_place == 1)
            if (form == blocking) then
                if (in_place == 1) then
                    call TAGC_Allreduce(MPI_IN_PLACE, recv, wide, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, tensor)
                else
                    call TAGC_Allreduce(send, recv, 2 * n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, tensor)
                end if
            else if (form == nonblocking) then
                if (in_place == 1) then
                    call TAGC_Iallreduce(MPI_IN_PLACE, recv, wide, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, tensor, &
                        request)
                else
                    call TAGC_Iallreduce(send, recv, 2 * n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, tensor, request)
                end if
                call complete(request)
            else
                if (round == 1) then
                    if (in_place == 1) then
                        call TAGC_Allreduce_init(MPI_IN_PLACE, recv, wide, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, &
                            tensor, MPI_INFO_NULL, request)
                    else
                        call TAGC_Allreduce_init(send, recv, 2 * n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, tensor, &
                            MPI_INFO_NULL, request)
                    end if
                end if
                call complete(request)
            end if
            call check(all(recv == expected), 'not what MPI gives')
        end do
        call finish(request)
        call drop(tensor)
    end subroutine

    ! Uneven parts, one of them empty
    subroutine parts(counts)
        integer, intent(out) :: counts(0:)
        integer :: r
        counts = [(mod(r * 37, 101) + 3 * r, r=0, ranks - 1)]
        if (ranks == 1) counts = 11
    end subroutine

    subroutine reduce_scatter_4()
        integer, asynchronous :: counts(0:ranks - 1)
        integer(MPI_COUNT_KIND), asynchronous :: wide(0:ranks - 1)
        real(4), allocatable, asynchronous :: send(:), recv(:)
        real(4), allocatable :: expected(:)
        type(TAGC_Tensor) :: tensor
        type(TAGC_Request) :: request
        integer :: round, i, n, own
        call named('reduce_scatter real(4)')
        call parts(counts)
        wide = counts
        n = sum(counts)
        own = counts(my_rank)
        allocate (send(n), recv(n + 2), expected(max(own, 1)))
        call make(tensor, n, MPI_REAL4)
        do round = 1, merge(3, 1, form == persistent)
            send = real([(value(my_rank + round, i), i=1, n)])
            call MPI_Reduce_scatter(send, expected, counts, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD)
            recv = -1
            if (in_place == 1) recv(1:n) = send
            if (form == blocking) then
                if (in_place == 1 .and. large == 1) then
                    call TAGC_Reduce_scatter(MPI_IN_PLACE, recv, wide, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD, tensor)
                else if (in_place == 1) then
                    call TAGC_Reduce_scatter(MPI_IN_PLACE, recv, counts, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD, tensor)
                else if (large == 1) then
                    call TAGC_Reduce_scatter(send, recv, wide, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD, tensor)
                else
                    call TAGC_Reduce_scatter(send, recv, counts, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD, tensor)
                end if
            else if (form == nonblocking) then
                if (in_place == 1 .and. large == 1) then
                    call TAGC_Ireduce_scatter(MPI_IN_PLACE, recv, wide, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD, tensor, request)
                else if (in_place == 1) then
                    call TAGC_Ireduce_scatter(MPI_IN_PLACE, recv, counts, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD, tensor, request)
                else if (large == 1) then
                    call TAGC_Ireduce_scatter(send, recv, wide, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD, tensor, request)
                else
                    call TAGC_Ireduce_scatter(send, recv, counts, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD, tensor, request)
                end if
                call complete(request)
            else
                if (round == 1) then
                    if (in_place == 1 .and. large == 1) then
                        call TAGC_Reduce_scatter_init(MPI_IN_PLACE, recv, wide, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD, tensor, &
                            MPI_INFO_NULL, request)
                    else if (in_place == 1) then
                        call TAGC_Reduce_scatter_init(MPI_IN_PLACE, recv, counts, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD, &
                            tensor, MPI_INFO_NULL, request)
                    else if (large == 1) then
                        call TAGC_Reduce_scatter_init(send, recv, wide, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD, tensor, &
                            MPI_INFO_NULL, request)
                    else
                        call TAGC_Reduce_scatter_init(send, recv, counts, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD, tensor, &
                            MPI_INFO_NULL, request)
                    end if
                end if
                call complete(request)
            end if
            call check(all(recv(1:own) == expected(1:own)), 'not what MPI gives')
            call check(all(recv(n + 1:) == -1), 'written behind its end')
            if (in_place == 0) call check(all(recv(own + 1:) == -1), 'more than the own part written')
        end do
        call finish(request)
        call drop(tensor)
    end subroutine

    subroutine reduce_scatter_8()
        integer, asynchronous :: counts(0:ranks - 1)
        real(8), allocatable, asynchronous :: send(:), recv(:)
        real(8), allocatable :: expected(:)
        type(TAGC_Tensor) :: tensor
        type(TAGC_Request) :: request
        integer :: round, i, n, own
        call named('reduce_scatter real(8)')
        call parts(counts)
        n = sum(counts)
        own = counts(my_rank)
        allocate (send(n), recv(n), expected(max(own, 1)))
        call make(tensor, n, MPI_REAL8)
        do round = 1, merge(3, 1, form == persistent)
            send = [(value(my_rank + round, i), i=1, n)]
            call MPI_Reduce_scatter(send, expected, counts, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD)
            recv(:) = merge(send, -1.0d0, in_place == 1)
            if (form == blocking) then
                if (in_place == 1) then
                    call TAGC_Reduce_scatter(MPI_IN_PLACE, recv, counts, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD, tensor)
                else
                    call TAGC_Reduce_scatter(send, recv, counts, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD, tensor)
                end if
            else if (form == nonblocking) then
                if (in_place == 1) then
                    call TAGC_Ireduce_scatter(MPI_IN_PLACE, recv, counts, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD, tensor, request)
                else
                    call TAGC_Ireduce_scatter(send, recv, counts, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD, tensor, request)
                end if
                call complete(request)
            else
                if (round == 1) then
                    if (in_place == 1) then
                        call TAGC_Reduce_scatter_init(MPI_IN_PLACE, recv, counts, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD, &
                            tensor, MPI_INFO_NULL, request)
                    else
                        call TAGC_Reduce_scatter_init(send, recv, counts, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD, tensor, &
                            MPI_INFO_NULL, request)
                    end if
                end if
                call complete(request)
            end if
            call check(all(recv(1:own) == expected(1:own)), 'not what MPI gives')
        end do
        call finish(request)
        call drop(tensor)
    end subroutine

    subroutine block_4(part)
        integer, intent(in) :: part
        real(4), asynchronous :: send(part * ranks), recv(part * ranks)
        real(4) :: expected(part)
        integer(MPI_COUNT_KIND) :: wide
        type(TAGC_Tensor) :: tensor
        type(TAGC_Request) :: request
        integer :: round, i
        call named('reduce_scatter_block real(4)')
        wide = part
        call make(tensor, part * ranks, MPI_REAL)
        do round = 1, merge(3, 1, form == persistent)
            send = real([(value(my_rank + round, i), i=1, part * ranks)])
            call MPI_Reduce_scatter_block(send, expected, part, MPI_REAL, MPI_SUM, MPI_COMM_WORLD)
            recv(:) = merge(send, -1.0, in_place == 1)
            if (form == blocking) then
                if (in_place == 1 .and. large == 1) then
                    call TAGC_Reduce_scatter_block(MPI_IN_PLACE, recv, wide, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor)
                else if (in_place == 1) then
                    call TAGC_Reduce_scatter_block(MPI_IN_PLACE, recv, part, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor)
                else if (large == 1) then
                    call TAGC_Reduce_scatter_block(send, recv, wide, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor)
                else
                    call TAGC_Reduce_scatter_block(send, recv, part, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor)
                end if
            else if (form == nonblocking) then
                if (in_place == 1 .and. large == 1) then
                    call TAGC_Ireduce_scatter_block(MPI_IN_PLACE, recv, wide, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, &
                        request)
                else if (in_place == 1) then
                    call TAGC_Ireduce_scatter_block(MPI_IN_PLACE, recv, part, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, &
                        request)
                else if (large == 1) then
                    call TAGC_Ireduce_scatter_block(send, recv, wide, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, request)
                else
                    call TAGC_Ireduce_scatter_block(send, recv, part, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, request)
                end if
                call complete(request)
            else
                if (round == 1) then
                    if (in_place == 1 .and. large == 1) then
                        call TAGC_Reduce_scatter_block_init(MPI_IN_PLACE, recv, wide, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, &
                            tensor, MPI_INFO_NULL, request)
                    else if (in_place == 1) then
                        call TAGC_Reduce_scatter_block_init(MPI_IN_PLACE, recv, part, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, &
                            tensor, MPI_INFO_NULL, request)
                    else if (large == 1) then
                        call TAGC_Reduce_scatter_block_init(send, recv, wide, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, &
                            MPI_INFO_NULL, request)
                    else
                        call TAGC_Reduce_scatter_block_init(send, recv, part, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, &
                            MPI_INFO_NULL, request)
                    end if
                end if
                call complete(request)
            end if
            call check(all(recv(1:part) == expected), 'not what MPI gives')
        end do
        call finish(request)
        call drop(tensor)
    end subroutine

    subroutine block_8(part)
        integer, intent(in) :: part
        real(8), asynchronous :: send(part * ranks), recv(part * ranks)
        real(8) :: expected(part)
        type(TAGC_Tensor) :: tensor
        integer :: i
        if (form /= blocking) return
        call named('reduce_scatter_block real(8), average')
        call make(tensor, part * ranks, MPI_REAL8)
        send = [(value(my_rank, i), i=1, part * ranks)]
        call MPI_Reduce_scatter_block(send, expected, part, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD)
        recv = merge(send, -1.0d0, in_place == 1)
        if (in_place == 1) then
            call TAGC_Reduce_scatter_block(MPI_IN_PLACE, recv, part, MPI_REAL8, TAGC_AVG(), MPI_COMM_WORLD, tensor)
        else
            call TAGC_Reduce_scatter_block(send, recv, part, MPI_REAL8, TAGC_AVG(), MPI_COMM_WORLD, tensor)
        end if
        call check(all(recv(1:part) == expected / ranks), 'not the average')
        call drop(tensor)
    end subroutine

    subroutine no_elements()
        real(4) :: nothing(0)
        integer :: code
        step = 'no elements'
        call TAGC_Allreduce(nothing, nothing, 0, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, code)
        call check(code == MPI_SUCCESS, 'an error')
    end subroutine

    ! A scalar, an assumed-size array, and rank 4
    subroutine large_rank()
        real(4) :: one, sum_of, cube(2, 3, 4, 5), sums(2, 3, 4, 5)
        step = 'shapes'
        one = real(my_rank + 1)
        call TAGC_Allreduce(one, sum_of, 1, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL)
        call check(sum_of == ranks * (ranks + 1) / 2, 'a scalar')
        cube = one
        call TAGC_Allreduce(cube, sums, size(cube), MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL)
        call check(all(sums == sum_of), 'rank 4')
        call old_style(cube, sums, size(cube))
        call check(all(sums == sum_of), 'assumed size')
        sums = 0
        call TAGC_Allreduce(cube(:, :, :, 2:3), sums(:, :, :, 4:), 48, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL)
        call check(all(sums(:, :, :, 4:) == sum_of) .and. all(sums(:, :, :, :3) == 0), 'a contiguous section')
    end subroutine

    subroutine old_style(a, b, n)
        integer, intent(in) :: n
        real(4) :: a(*), b(*)
        b(1:n) = 0
        call TAGC_Allreduce(a, b, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL)
    end subroutine
end program
