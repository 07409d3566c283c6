! What Fortran costs more than C, between two ranks: mpicc -O2 -c fortran.c && mpifort -O2 -o fortran fortran.f90 fortran.o
! mpiexec -n 2 ./fortran [ROUNDS]. Each line compares two ways in ROUNDS (100) turns: microseconds one way, of the fastest turn and of the
! median one, and the median of the ratios of turns that follow each other.
program fortran
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_int, c_double, c_ptr, c_loc
  implicit none
  interface
    function c_round_trips(buffer, bytes, n) bind(C) result(seconds)
      import
      type(c_ptr), value :: buffer
      integer(c_int), value :: bytes, n
      real(c_double) :: seconds
    end function
  end interface
  integer, parameter :: rows = 131072 ! 1 MB of every second element
  real(c_double), target, asynchronous :: strided(2 * rows), plain(rows)
  integer :: rounds, rank
  character(20) :: argument
  type(MPI_Datatype) :: vector

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  rounds = 100
  call get_command_argument(1, argument)
  if (argument /= '') read (argument, *) rounds
  strided = 1
  plain = 2
  call MPI_Type_vector(rows, 1, 2, MPI_DOUBLE_PRECISION, vector)
  call MPI_Type_commit(vector)
  if (rank == 0) print '(a)', 'us one way: fastest and median of the first way, of the second, ratio'
  call compare('8 B: C, mpi_f08', 1, 2, 1000)
  call compare('8 B: array, contiguous section', 2, 3, 1000)
  call compare('1 MB: MPI_Type_vector, section', 4, 5, 4)
  call compare('1 MB: array, contiguous section', 6, 7, 4)
  call MPI_Finalize()
contains
  subroutine compare(title, first, second, n)
    character(*), intent(in) :: title
    integer, intent(in) :: first, second, n
    real(c_double) :: a(rounds), b(rounds), ratio(rounds)
    integer :: i
    call MPI_Barrier(MPI_COMM_WORLD)
    a(1) = round_trips(first, n)
    b(1) = round_trips(second, n)
    do i = 1, rounds
      a(i) = round_trips(first, n) / (2 * n) * 1d6
      b(i) = round_trips(second, n) / (2 * n) * 1d6
    end do
    ratio = b / a
    if (rank == 0) print '(a32, 4f10.3, f8.3)', title, minval(a), median(a), minval(b), median(b), median(ratio)
  end subroutine

  function round_trips(way, n) result(seconds)
    integer, intent(in) :: way, n
    real(c_double) :: seconds
    integer :: i, other
    if (way == 1) then
      seconds = c_round_trips(c_loc(plain), 8, n)
      return
    end if
    other = 1 - rank
    seconds = MPI_Wtime()
    do i = 1, n
      if (rank == 0) call send(way, other)
      call receive(way, other)
      if (rank == 1) call send(way, other)
    end do
    seconds = MPI_Wtime() - seconds
  end function

  subroutine send(way, to)
    integer, intent(in) :: way, to
    select case (way)
    case (2)
      call MPI_Send(plain, 8, MPI_BYTE, to, 0, MPI_COMM_WORLD)
    case (3)
      call MPI_Send(plain(1:1), 8, MPI_BYTE, to, 0, MPI_COMM_WORLD)
    case (4)
      call MPI_Send(strided, 1, vector, to, 0, MPI_COMM_WORLD)
    case (5)
      call MPI_Send(strided(::2), rows, MPI_DOUBLE_PRECISION, to, 0, MPI_COMM_WORLD)
    case (6)
      call MPI_Send(plain, rows, MPI_DOUBLE_PRECISION, to, 0, MPI_COMM_WORLD)
    case (7)
      call MPI_Send(plain(1:rows), rows, MPI_DOUBLE_PRECISION, to, 0, MPI_COMM_WORLD)
    end select
  end subroutine

  subroutine receive(way, from)
    integer, intent(in) :: way, from
    select case (way)
    case (2)
      call MPI_Recv(plain, 8, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    case (3)
      call MPI_Recv(plain(1:1), 8, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    case (4)
      call MPI_Recv(strided, 1, vector, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    case (5)
      call MPI_Recv(strided(::2), rows, MPI_DOUBLE_PRECISION, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    case (6)
      call MPI_Recv(plain, rows, MPI_DOUBLE_PRECISION, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    case (7)
      call MPI_Recv(plain(1:rows), rows, MPI_DOUBLE_PRECISION, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    end select
  end subroutine

  function median(values) result(middle)
    real(c_double), intent(in) :: values(:)
    real(c_double) :: sorted(ubound(values, 1)), middle, x
    integer :: i, j
    sorted = values
    do i = 2, ubound(sorted, 1)
      x = sorted(i)
      j = i - 1
      do while (j > 0)
        if (sorted(j) <= x) exit
        sorted(j + 1) = sorted(j)
        j = j - 1
      end do
      sorted(j + 1) = x
    end do
    middle = sorted((ubound(sorted, 1) + 1) / 2)
  end function
end program
