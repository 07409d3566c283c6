! One of two coupled programs: the sea below the air (coupled_air.c), which starts it.
program coupled_sea
    use mpi_f08
    implicit none
    integer, parameter :: cells = 24
    type(MPI_Comm) :: air
    integer :: rank, size, mine, airs, steps, step, i
    double precision :: all(cells), total(1), part(1)
    double precision, allocatable :: sea(:)

    call MPI_Init()
    call MPI_Comm_get_parent(air)
    if (air == MPI_COMM_NULL) then
        print '(a)', 'coupled_sea: start coupled_air, which spawns this program'
        call MPI_Abort(MPI_COMM_WORLD, 1)
    end if
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    call MPI_Comm_remote_size(air, airs)
    mine = cells / size
    allocate(sea(mine))
    sea = 20.0d0
    call MPI_Bcast(steps, 1, MPI_INTEGER, 0, air)
    do step = 1, steps
        call MPI_Allgather(sea, mine, MPI_DOUBLE_PRECISION, all, cells / airs, MPI_DOUBLE_PRECISION, air)
        do i = 1, mine
            sea(i) = sea(i) + 0.1d0 * (all(rank * mine + i) - sea(i))
        end do
    end do
    part(1) = sum(sea)
    call MPI_Reduce(part, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD)
    if (rank == 0) call MPI_Send(total, 1, MPI_DOUBLE_PRECISION, 0, 0, air)
    call MPI_Comm_disconnect(air)
    call MPI_Finalize()
end program coupled_sea
