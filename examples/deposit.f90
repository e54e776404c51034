! SPDX-License-Identifier: BSD-3-Clause
! Copyright (c) the TAGC authors
!
! Particles add their charge to a grid that all ranks share; then each rank gets its columns of the sum. A rank's particles
! are a cloud: it touches few cells, and the zeros need not travel. Nothing is rounded or held back (TAGC_TENSOR_NULL).
!
!   TAGC_ALGORITHM=direct mpiexec -n 4 ./deposit_f08
!
! Without TAGC_ALGORITHM a call without a tensor leaves the work to MPI's own collective: then both move the same bytes.
! examples/deposit.c is the same program in C; Fortran's first index is C's last.
program deposit_f08
    use mpi_f08
    use tagc_f08
    implicit none
    integer, parameter :: rows = 1024, columns = 1024, particles = 20000, steps = 10, unit = 256, spread = 48
    integer, parameter :: wide = selected_int_kind(18)
    integer :: rank, ranks, own, step, r, different, length, status
    integer, allocatable :: counts(:), x(:), y(:)
    double precision, allocatable :: grid(:, :), charge(:), of_mpi(:)
    double precision :: time, time_mpi, start, middle, again, total, mine(4), all_ranks(4), times(2), worst(2)
    integer(wide) :: random_state

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)

    ! Columns in parts that are as even as can be
    counts = [((columns / ranks + merge(1, 0, r < mod(columns, ranks))) * rows, r=0, ranks - 1)]
    own = counts(rank + 1)
    allocate (x(particles), y(particles), grid(rows, columns), charge(own), of_mpi(own))

    time = 0
    time_mpi = 0
    different = 0
    call scatter()
    do step = 0, steps  ! step 0 warms up
        call deposit()
        call MPI_Barrier(MPI_COMM_WORLD)
        start = MPI_Wtime()
        call TAGC_Reduce_scatter(grid, charge, counts, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, TAGC_TENSOR_NULL)
        middle = MPI_Wtime()
        call MPI_Barrier(MPI_COMM_WORLD)
        again = MPI_Wtime()
        call MPI_Reduce_scatter(grid, of_mpi, counts, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
        if (step > 0) then
            time = time + middle - start
            time_mpi = time_mpi + MPI_Wtime() - again
        end if
        different = different + count(charge /= of_mpi)
        total = sum(charge)
        call move()
    end do

    mine(1:2) = [total, dble(different)]
    call TAGC_Get_stat(TAGC_TENSOR_NULL, TAGC_STAT_BYTES_SENT, mine(3))
    call TAGC_Get_stat(TAGC_TENSOR_NULL, TAGC_STAT_BYTES_DENSE, mine(4))
    call MPI_Allreduce(mine, all_ranks, 4, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    times = [time, time_mpi] / steps
    call MPI_Reduce(times, worst, 2, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD)
    if (rank == 0) then
        print '(i0, a, i0, a, i0, a, i0)', ranks, ' ranks, ', particles, ' particles each, grid of ', rows, ' x ', columns
        print '(a, i0, a, i0)', 'charge ', nint(all_ranks(1)), ', cells that differ from MPI''s: ', nint(all_ranks(2))
        print '(a, i14, a, f10.3, a)', 'TAGC', nint(all_ranks(3) / (steps + 1)), ' bytes a step', worst(1) * 1e3, ' ms'
        print '(a, i14, a, f10.3, a)', 'MPI ', nint(all_ranks(4) / (steps + 1)), ' bytes a step', worst(2) * 1e3, ' ms'
        call get_environment_variable('TAGC_ALGORITHM', length=length, status=status)
        if (status /= 0) print '(a)', &
            'TAGC_ALGORITHM is not set: MPI''s own collective did the work; try TAGC_ALGORITHM=direct'
    end if
    call MPI_Finalize()
    if (all_ranks(2) /= 0) stop 1

contains

    integer function random_below(n)
        integer, intent(in) :: n
        random_state = mod(random_state * 1103515245_wide + 12345_wide, 2147483648_wide)
        random_below = int(mod(random_state / 65536, int(n, wide)))
    end function

    ! A cloud around a place of the rank's own; positions in units of 1/256 of a cell: all weights are exact, and so are
    ! all sums
    subroutine scatter()
        integer :: i, k
        random_state = rank + 1
        do i = 1, particles
            x(i) = (mod(rows * (2 * rank + 1), rows) / 2 + rows / 4) * unit
            y(i) = (columns * mod(5 * rank + 2, 8) / 8 + columns / 16) * unit
            do k = 1, 3
                x(i) = x(i) + random_below(spread * unit) - spread * unit / 2
                y(i) = y(i) + random_below(spread * unit) - spread * unit / 2
            end do
        end do
    end subroutine

    subroutine move()
        integer :: i
        do i = 1, particles
            x(i) = x(i) + random_below(2 * unit) - unit / 2
            y(i) = y(i) + random_below(2 * unit) - unit
        end do
    end subroutine

    ! Each particle's unit charge goes to the four cells around it
    subroutine deposit()
        integer :: i, px, py, row, column, next, below
        double precision :: right, down
        grid = 0
        do i = 1, particles
            px = modulo(x(i), rows * unit)
            py = modulo(y(i), columns * unit)
            row = px / unit + 1
            column = py / unit + 1
            right = dble(mod(px, unit)) / unit
            down = dble(mod(py, unit)) / unit
            next = mod(row, rows) + 1
            below = mod(column, columns) + 1
            grid(row, column) = grid(row, column) + (1 - right) * (1 - down)
            grid(next, column) = grid(next, column) + right * (1 - down)
            grid(row, below) = grid(row, below) + (1 - right) * down
            grid(next, below) = grid(next, below) + right * down
        end do
    end subroutine
end program
