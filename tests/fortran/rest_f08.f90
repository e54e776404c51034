! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) the TAGC authors
!
! mpi_f08: what is refused and how errors read, strings, settings through MPI_Info, statistics, state of tensors, gathers,
! predefined handles, requests of MPI's own.
program rest_f08
    use mpi_f08
    use tagc_f08
    use checks
    implicit none
    integer :: ranks, total

    call MPI_Init()
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Comm_rank(MPI_COMM_WORLD, my_rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call strings()
    call strided()
    call strided_on_one_rank()
    call settings()
    call state()
    call gathers(TAGC_TENSOR_NULL, 'no tensor', 0.0)
    call gathers_with_tensors()
    call handles()
    call mpi_requests()
    call MPI_Allreduce(failures, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (my_rank == 0 .and. total == 0) print *, 'all well'
    call MPI_Finalize()
    if (total /= 0) stop 1

contains

    integer function class_of(code)
        integer, intent(in) :: code
        call TAGC_Error_class(code, class_of)
    end function

    logical function says(code, words)
        integer, intent(in) :: code
        character(len=*), intent(in) :: words
        character(len=TAGC_MAX_ERROR_STRING) :: text
        integer :: length
        call TAGC_Error_string(code, text, length)
        says = index(text(1:length), words) > 0
        if (.not. says) print *, 'it says: ', text(1:length)
    end function

    subroutine strings()
        character(len=TAGC_MAX_LIBRARY_VERSION_STRING) :: version
        character(len=9) :: short
        integer :: major, minor, length, code
        step = 'strings'
        call TAGC_Get_version(major, minor)
        call check(major == TAGC_VERSION .and. minor == TAGC_SUBVERSION, 'version')
        version = repeat('#', len(version))
        call TAGC_Get_library_version(version, length, code)
        call check(code == MPI_SUCCESS, 'library version')
        call check(version(1:5) == 'TAGC ' .and. length == len_trim(version), 'library version: text or length')
        call check(version(length + 1:) == ' ', 'library version: not padded')
        call TAGC_Get_library_version(short, length)
        call check(length == 9 .and. short == version(1:9), 'a short string')
        call check(says(TAGC_ERR_BUSY, 'in flight'), 'text of a class')
    end subroutine

    subroutine strided()
        real(4), target, asynchronous :: a(20), b(20), square(4, 4), c(16)
        real(4), pointer :: p(:)
        type(TAGC_Request) :: request
        integer :: code
        step = 'sections'
        a = 1
        b = 7
        square = 1
        call TAGC_Allreduce(a(1:20:2), b, 10, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, code)
        call check(class_of(code) == MPI_ERR_BUFFER, 'sendbuf with a stride')
        call check(says(code, 'sendbuf is a section with a stride'), 'text')
        call TAGC_Allreduce(a, b(1:20:2), 10, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, code)
        call check(class_of(code) == MPI_ERR_BUFFER .and. says(code, 'recvbuf'), 'recvbuf with a stride')
        call TAGC_Allreduce(MPI_IN_PLACE, b(20:1:-1), 10, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, code)
        call check(class_of(code) == MPI_ERR_BUFFER, 'backwards')
        call TAGC_Allreduce(square(1:2, :), b, 8, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, code)
        call check(class_of(code) == MPI_ERR_BUFFER, 'rows of a matrix')
        call TAGC_Allreduce(square(2, :), b, 4, MPI_REAL, MPI_MAX, MPI_COMM_WORLD, TAGC_TENSOR_NULL, code)
        call check(class_of(code) == MPI_ERR_BUFFER, 'one row, and an operation of MPI')
        p => a(2:20:3)
        call TAGC_Iallreduce(p, b, 5, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, request, code)
        call check(class_of(code) == MPI_ERR_BUFFER .and. request == TAGC_REQUEST_NULL, 'pointer, nonblocking')
        call TAGC_Reduce_scatter_block_init(p, b, int(1, MPI_COUNT_KIND), MPI_REAL, MPI_SUM, MPI_COMM_WORLD, &
            TAGC_TENSOR_NULL, MPI_INFO_NULL, request, code)
        call check(class_of(code) == MPI_ERR_BUFFER .and. request == TAGC_REQUEST_NULL, 'pointer, persistent')
        call TAGC_Allgather(a(1:4:2), 2, MPI_REAL, c, 2, MPI_REAL, MPI_COMM_WORLD, TAGC_TENSOR_NULL, code)
        call check(class_of(code) == MPI_ERR_BUFFER, 'gather')
        call check(all(b == 7), 'written by a call that was refused')
        ! What is contiguous goes
        p => a(3:12)
        call TAGC_Allreduce(p, b, 10, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, code)
        call check(code == MPI_SUCCESS .and. all(b(1:10) == ranks), 'a contiguous pointer')
        call TAGC_Allreduce(square(:, 2:3), b, 8, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, code)
        call check(code == MPI_SUCCESS, 'columns of a matrix')
        call TAGC_Allreduce(square(2:2, 3:3), b, 1, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, code)
        call check(code == MPI_SUCCESS, 'a section of one element')
    end subroutine

    ! With a tensor an error of one rank is one of all, and nobody waits
    subroutine strided_on_one_rank()
        real(4) :: a(20), b(20)
        type(TAGC_Tensor) :: tensor
        integer :: code
        step = 'a section on the last rank'
        a = 1
        call TAGC_Tensor_create(MPI_COMM_WORLD, 'strided', 10, MPI_REAL, MPI_INFO_NULL, tensor)
        if (my_rank == ranks - 1) then
            call TAGC_Allreduce(a(1:20:2), b, 10, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, code)
            call check(class_of(code) == MPI_ERR_BUFFER, 'class there')
        else
            call TAGC_Allreduce(a, b, 10, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, code)
            call check(class_of(code) == TAGC_ERR_MISMATCH, 'class elsewhere')
        end if
        call TAGC_Allreduce(a, b, 10, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor, code)
        call check(code == MPI_SUCCESS .and. all(b(1:10) == ranks), 'afterwards')
        call TAGC_Tensor_free(tensor)
    end subroutine

    subroutine settings()
        integer, parameter :: n = 1000
        real(8) :: a(n), b(n), norm, calls
        type(TAGC_Tensor) :: tensor, other
        type(MPI_Info) :: info, used
        character(len=40) :: setting
        logical :: found
        integer :: code, i
        step = 'settings'
        call MPI_Info_create(info)
        call MPI_Info_set(info, 'tagc_sparsity', '0.9')
        call MPI_Info_set(info, 'tagc_algorithm', 'direct')
        call MPI_Info_set(info, 'tagc_min_count', '0')
        call TAGC_Tensor_create(MPI_COMM_WORLD, 'density  ', n, MPI_DOUBLE_PRECISION, info, tensor, code)
        call check(code == MPI_SUCCESS .and. tensor /= TAGC_TENSOR_NULL, 'create')
        other = tensor
        call check(other == tensor .and. .not. other /= tensor, 'a copy is not the same')
        call TAGC_Tensor_get_info(tensor, used)
        call MPI_Info_get(used, 'tagc_sparsity', len(setting), setting, found)
        call check(found .and. setting(1:3) == '0.9', 'setting in force')
        call MPI_Info_free(used)
        a = [(dble(i) + my_rank, i=1, n)]
        call TAGC_Allreduce(a, b, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, tensor)
        call check(count(b /= 0) < n / 2 .and. count(b /= 0) > 0, 'nothing was held back')
        call TAGC_Tensor_get_norm(tensor, norm)
        call check(norm > 0, 'norm of the residual')
        call TAGC_Get_stat(tensor, TAGC_STAT_CALLS, calls)
        call check(calls == 1, 'calls')
        call TAGC_Tensor_reset(tensor)
        call TAGC_Tensor_get_norm(tensor, norm)
        call check(norm == 0, 'norm after a reset')
        ! The name came over without its blanks
        call TAGC_Allreduce(a, b, n - 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, tensor, code)
        call check(class_of(code) == TAGC_ERR_TENSOR .and. says(code, 'tensor "density"'), 'name of the tensor')
        call TAGC_Tensor_free(tensor)
        call check(tensor == TAGC_TENSOR_NULL, 'free')
        call TAGC_Tensor_get_norm(other, norm, code)
        call check(class_of(code) == TAGC_ERR_TENSOR, 'a copy of a freed tensor')
        call MPI_Info_set(info, 'tagc_sparsity', '2')
        call TAGC_Tensor_create(MPI_COMM_WORLD, '', int(n, MPI_COUNT_KIND), MPI_REAL, info, tensor, code)
        call check(class_of(code) == TAGC_ERR_SETTING .and. tensor == TAGC_TENSOR_NULL, 'a wrong setting')
        call check(says(code, 'sparsity'), 'a wrong setting: text')
        call MPI_Info_free(info)
    end subroutine

    subroutine state()
        integer, parameter :: n = 500
        real(4) :: a(n), b(n)
        double precision :: norm, again
        character(len=:), allocatable :: folder
        character(len=1), allocatable :: image(:)
        integer(MPI_COUNT_KIND) :: bytes
        type(TAGC_Tensor) :: tensor
        type(MPI_Info) :: info
        integer :: code, i, length
        step = 'state'
        call MPI_Info_create(info)
        call MPI_Info_set(info, 'tagc_sparsity', '0.9')
        call MPI_Info_set(info, 'tagc_algorithm', 'direct')
        call MPI_Info_set(info, 'tagc_min_count', '0')
        call TAGC_Tensor_create(MPI_COMM_WORLD, 'state', n, MPI_REAL, info, tensor)
        a = [(real(i), i=1, n)]
        call TAGC_Allreduce(a, b, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, tensor)
        call TAGC_Tensor_get_norm(tensor, norm)
        call TAGC_Tensor_pack_size(tensor, bytes)
        allocate (image(2 * bytes))
        call TAGC_Tensor_pack(tensor, image(1:2 * bytes:2), bytes, code)
        call check(class_of(code) == MPI_ERR_BUFFER .and. says(code, 'buf is a section'), 'pack into a section')
        call TAGC_Tensor_pack(tensor, image, bytes, code)
        call check(code == MPI_SUCCESS, 'pack')
        call TAGC_Tensor_reset(tensor)
        call TAGC_Tensor_unpack(tensor, image, bytes, code)
        call TAGC_Tensor_get_norm(tensor, again)
        call check(code == MPI_SUCCESS .and. again == norm, 'unpack')
        call get_environment_variable('TAGC_TEST_DIR', length=length)
        allocate (character(len=max(length, 4)) :: folder)
        folder = '/tmp'
        if (length > 0) call get_environment_variable('TAGC_TEST_DIR', folder)
        call TAGC_Tensor_save(tensor, trim(folder)//'/fortran.state   ', code)
        call check(code == MPI_SUCCESS, 'save')
        call TAGC_Tensor_reset(tensor)
        call TAGC_Tensor_load(tensor, trim(folder)//'/fortran.state', code)
        call TAGC_Tensor_get_norm(tensor, again)
        call check(code == MPI_SUCCESS .and. again == norm, 'load')
        call TAGC_Tensor_free(tensor)
        call MPI_Info_free(info)
    end subroutine

    ! In all forms; with a tensor every one after the first is coded against what the one before it left.
    subroutine gathers(tensor, what, slack)
        type(TAGC_Tensor), intent(in) :: tensor
        character(len=*), intent(in) :: what
        real(4), intent(in) :: slack
        real(4), asynchronous :: mine(5), every(5 * ranks), expected(5 * ranks)
        integer, asynchronous :: counts(ranks), displs(ranks)
        integer(MPI_COUNT_KIND), asynchronous :: wide(ranks)
        integer(MPI_ADDRESS_KIND), asynchronous :: far(ranks)
        type(TAGC_Request) :: request
        integer :: i, round
        mine = [(value(my_rank, i), i=1, 5)]
        call MPI_Allgather(mine, 5, MPI_REAL, expected, 5, MPI_REAL, MPI_COMM_WORLD)
        counts = 5
        displs = [(5 * (i - 1), i=1, ranks)]
        wide = counts
        far = displs
        do round = 1, 10
            every = -1
            if (round > 8) every(5 * my_rank + 1:5 * my_rank + 5) = mine
            write (step, '(3a, i0)') 'gather, ', what, ', ', round
            select case (round)
            case (1)
                call TAGC_Allgather(mine, 5, MPI_REAL, every, 5, MPI_REAL, MPI_COMM_WORLD, tensor)
            case (2)
                call TAGC_Allgather(mine, 5_MPI_COUNT_KIND, MPI_REAL, every, 5_MPI_COUNT_KIND, MPI_REAL, MPI_COMM_WORLD, &
                    tensor)
            case (3)
                call TAGC_Allgatherv(mine, 5, MPI_REAL, every, counts, displs, MPI_REAL, MPI_COMM_WORLD, tensor)
            case (4)
                call TAGC_Allgatherv(mine, 5_MPI_COUNT_KIND, MPI_REAL, every, wide, far, MPI_REAL, MPI_COMM_WORLD, &
                    tensor)
            case (5)
                call TAGC_Iallgather(mine, 5, MPI_REAL, every, 5, MPI_REAL, MPI_COMM_WORLD, tensor, request)
                call TAGC_Wait(request)
            case (6)
                call TAGC_Iallgatherv(mine, 5, MPI_REAL, every, counts, displs, MPI_REAL, MPI_COMM_WORLD, &
                    tensor, request)
                call TAGC_Wait(request)
            case (7)
                call TAGC_Allgather_init(mine, 5, MPI_REAL, every, 5, MPI_REAL, MPI_COMM_WORLD, tensor, &
                    MPI_INFO_NULL, request)
                call TAGC_Start(request)
                call TAGC_Wait(request)
                call TAGC_Request_free(request)
            case (8)
                call TAGC_Allgatherv_init(mine, 5_MPI_COUNT_KIND, MPI_REAL, every, wide, far, MPI_REAL, MPI_COMM_WORLD, &
                    tensor, MPI_INFO_NULL, request)
                call TAGC_Start(request)
                call TAGC_Wait(request)
                call TAGC_Request_free(request)
            case (9)
                call TAGC_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, every, 5, MPI_REAL, MPI_COMM_WORLD, &
                    tensor)
            case (10)
                call TAGC_Iallgatherv(MPI_IN_PLACE, 0_MPI_COUNT_KIND, MPI_DATATYPE_NULL, every, wide, far, MPI_REAL, &
                    MPI_COMM_WORLD, tensor, request)
                call TAGC_Wait(request)
            end select
            call check(all(abs(every - expected) <= slack), 'not what MPI gives')
        end do
    end subroutine

    subroutine gathers_with_tensors()
        character(len=8), parameter :: forms(4) = [character(len=8) :: 'lossless', 'native', 'bfloat16', 'int8']
        real(4), parameter :: slack(4) = [0.0, 0.0, 0.0, 8 / 127.0 * 0.52]  ! small integers are exact in bfloat16
        type(TAGC_Tensor) :: tensor
        type(MPI_Info) :: info
        double precision :: number
        integer :: i
        do i = 1, size(forms)
            step = 'tensor of gathers'
            call MPI_Info_create(info)
            call MPI_Info_set(info, 'tagc_gather', trim(forms(i)))
            call TAGC_Tensor_create(MPI_COMM_WORLD, 'weights', 5 * ranks, MPI_REAL, info, tensor)
            call MPI_Info_free(info)
            call gathers(tensor, trim(forms(i)), slack(i))
            call TAGC_Get_stat(tensor, TAGC_STAT_CALLS, number)
            call check(number == 10, 'calls')
            call TAGC_Get_stat(tensor, TAGC_STAT_ALGORITHM, number)
            if (i > 2) call check(number == TAGC_ALGORITHM_CODED, 'it is not coded')
            call TAGC_Get_stat(tensor, TAGC_STAT_REGATHERED, number)
            call check(number == 0, 'what ranks remember differs')
            call TAGC_Tensor_free(tensor)
        end do
    end subroutine

    subroutine handles()
        type(MPI_Datatype) :: half
        type(MPI_Op) :: average
        integer :: bytes, handle
        integer(2) :: ones(4), sums(4)
        step = 'predefined handles'
        half = TAGC_BFLOAT16()
        call MPI_Type_size(half, bytes)
        call check(bytes == 2, 'size of bfloat16')
        call TAGC_Predefined_bfloat16(handle)
        call check(handle == half%MPI_VAL, 'bfloat16, as an integer')
        call TAGC_Predefined_float16(half)
        call check(half == TAGC_FLOAT16() .and. half /= TAGC_BFLOAT16(), 'float16')
        average = TAGC_AVG()
        call TAGC_Predefined_avg(handle)
        call check(handle == average%MPI_VAL, 'average, as an integer')
        ones = int(z'3f80', 2)  ! 1.0
        call TAGC_Allreduce(ones, sums, 4, TAGC_BFLOAT16(), TAGC_AVG(), MPI_COMM_WORLD, TAGC_TENSOR_NULL)
        call check(all(sums == ones), 'average of bfloat16')
    end subroutine

    subroutine mpi_requests()
        real(4), asynchronous :: a(64), b(64)
        type(TAGC_Request) :: request, requests(2)
        type(MPI_Request) :: theirs
        logical :: flag
        integer :: code
        step = 'requests'
        a = 1
        call TAGC_Iallreduce(a, b, 64, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, request)
        call TAGC_Request_get_mpi(request, theirs, code)
        if (code == MPI_SUCCESS) then
            call check(request == TAGC_REQUEST_NULL, 'it stayed')
            call MPI_Wait(theirs, MPI_STATUS_IGNORE)
        else
            call check(class_of(code) == TAGC_ERR_UNSUPPORTED .and. request /= TAGC_REQUEST_NULL, 'class')
            call TAGC_Wait(request)
        end if
        call check(all(b == ranks), 'sum')
        call TAGC_Iallreduce(a(1:32), b(1:32), 32, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL, requests(1))
        call TAGC_Iallreduce(a(33:), b(33:), 32, MPI_REAL, MPI_MAX, MPI_COMM_WORLD, TAGC_TENSOR_NULL, requests(2))
        flag = .false.
        do while (.not. flag)
            call TAGC_Testall(2, requests, flag)
        end do
        call check(all(b(1:32) == ranks) .and. all(b(33:) == 1), 'two at once')
        call check(all(requests == TAGC_REQUEST_NULL), 'they stayed')
        call TAGC_Start(requests(1), code)
        call check(class_of(code) == TAGC_ERR_REQUEST, 'start of nothing')
    end subroutine
end program
