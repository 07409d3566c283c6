! heat2d: the heat equation on a square plate, cut into blocks of rows and columns.
!
!   mpifort -O2 -o heat2d heat2d.f90 && mpiexec -n 4 ./heat2d
!
! The edges are kept at 0. Each rank owns a block of the plate and, in every step, swaps the outermost cells with its four
! neighbours while it computes the inner ones. A row of the block is a section of an array that is not contiguous: with
! mpi_f08 it is sent as it is. The plate begins as one wave, which must fade by the same factor in every step: that is
! how the program checks its result.
program heat2d
  use mpi_f08
  implicit none
  integer, parameter :: dp = kind(1d0), n = 300, steps = 400
  real(dp), parameter :: pi = acos(-1d0), r = 0.2_dp, angle = pi / (n + 1)
  real(dp), allocatable, asynchronous :: now(:, :)
  real(dp), allocatable :: next(:, :)
  type(MPI_Comm) :: grid
  integer :: rank, ranks, dims(2) = 0, place(2), above, below, left, right, rows, columns, step, i, j
  real(dp) :: start, seconds, factor, error

  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Dims_create(ranks, 2, dims)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.false., .false.], .true., grid)
  call MPI_Comm_rank(grid, rank)
  call MPI_Cart_coords(grid, rank, 2, place)
  call MPI_Cart_shift(grid, 0, 1, above, below)   ! MPI_PROC_NULL at the edges of the plate
  call MPI_Cart_shift(grid, 1, 1, left, right)

  ! The rank's block, with one row or column more on each side for what the neighbours own.
  rows = first(1, place(1) + 1) - first(1, place(1))
  columns = first(2, place(2) + 1) - first(2, place(2))
  allocate (now(0:rows + 1, 0:columns + 1), next(0:rows + 1, 0:columns + 1))
  now = 0
  do j = 1, columns
    do i = 1, rows
      now(i, j) = wave(i, j)
    end do
  end do
  next = now

  start = MPI_Wtime()
  do step = 1, steps
    call one_step()
  end do
  seconds = MPI_Wtime() - start

  ! The wave is an eigenvector of the scheme.
  factor = (1 - 8 * r * sin(angle / 2)**2)**steps
  error = 0
  do j = 1, columns
    do i = 1, rows
      error = max(error, abs(now(i, j) - factor * wave(i, j)))
    end do
  end do
  call MPI_Allreduce(MPI_IN_PLACE, error, 1, MPI_DOUBLE_PRECISION, MPI_MAX, grid)
  if (rank == 0) then
    print '("heat2d on ", i0, " x ", i0, " ranks: ", i0, " steps of ", i0, " x ", i0, " cells in ", f0.2, " s")', &
      dims, steps, n, n, seconds
    if (error < 1d-10) then
      print '("the wave has faded to ", f6.4, ", as it must be; largest error ", es7.1)', factor, error
    else
      print '("WRONG: the largest error is ", es9.1)', error
    end if
  end if
  call MPI_Finalize()
  if (error >= 1d-10) stop 1

contains

  ! The first cell, counted from 1, of the block number `block` along a dimension.
  integer function first(dimension, block)
    integer, intent(in) :: dimension, block
    first = 1 + n * block / dims(dimension)
  end function

  ! What the plate begins as, in the cell (i, j) of this block.
  real(dp) function wave(i, j)
    integer, intent(in) :: i, j
    wave = sin(angle * (first(1, place(1)) + i - 1)) * sin(angle * (first(2, place(2)) + j - 1))
  end function

  subroutine one_step()
    type(MPI_Request) :: swap(8)
    real(dp), allocatable :: kept(:, :)

    call MPI_Irecv(now(0, 1:columns), columns, MPI_DOUBLE_PRECISION, above, 1, grid, swap(1))
    call MPI_Irecv(now(rows + 1, 1:columns), columns, MPI_DOUBLE_PRECISION, below, 2, grid, swap(2))
    call MPI_Irecv(now(1:rows, 0), rows, MPI_DOUBLE_PRECISION, left, 3, grid, swap(3))
    call MPI_Irecv(now(1:rows, columns + 1), rows, MPI_DOUBLE_PRECISION, right, 4, grid, swap(4))
    call MPI_Isend(now(1, 1:columns), columns, MPI_DOUBLE_PRECISION, above, 2, grid, swap(5))
    call MPI_Isend(now(rows, 1:columns), columns, MPI_DOUBLE_PRECISION, below, 1, grid, swap(6))
    call MPI_Isend(now(1:rows, 1), rows, MPI_DOUBLE_PRECISION, left, 4, grid, swap(7))
    call MPI_Isend(now(1:rows, columns), rows, MPI_DOUBLE_PRECISION, right, 3, grid, swap(8))
    call relax(2, rows - 1, 2, columns - 1)          ! needs nothing of the neighbours
    call MPI_Waitall(8, swap, MPI_STATUSES_IGNORE)
    call relax(1, rows, 1, 1)
    call relax(1, rows, columns, columns)
    call relax(1, 1, 2, columns - 1)
    call relax(rows, rows, 2, columns - 1)
    call move_alloc(now, kept)
    call move_alloc(next, now)
    call move_alloc(kept, next)
  end subroutine

  ! The cells (top:bottom, from:to) after one step.
  subroutine relax(top, bottom, from, to)
    integer, intent(in) :: top, bottom, from, to
    integer :: i, j
    do j = from, to
      do i = top, bottom
        next(i, j) = now(i, j) + r * (now(i - 1, j) + now(i + 1, j) + now(i, j - 1) + now(i, j + 1) - 4 * now(i, j))
      end do
    end do
  end subroutine
end program
