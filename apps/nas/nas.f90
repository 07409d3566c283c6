! nas: what the kernels of this directory share: random numbers, the problem that is asked for,
! verification, the report.
!
! The problems are those of "The NAS Parallel Benchmarks" (NASA Ames, RNR-94-007); class W came with
! NPB 2 (NAS-95-020).
module nas
  use, intrinsic :: iso_fortran_env, only: int64, error_unit
  use mpi_f08
  implicit none
  private
  public :: dp, int64, start, give_up, is_power_of_two, first, fill, ahead, stopwatch, agrees, finish

  integer, parameter :: dp = kind(1d0)

  ! Random numbers: x(k+1) = a x(k) mod 2^46, each divided by 2^46.
  integer(int64), parameter :: a = 5_int64**13, half = 2_int64**23, whole = 2_int64**46
  integer(int64), parameter, public :: seed = 314159265_int64

  ! Of MPI_COMM_WORLD; start sets them.
  integer, public, protected :: rank, ranks

contains

  ! Begins a kernel: initializes MPI, and reads the class of the problem, the first argument: one of
  ! `classes`. It is the only one, but for those that `more` names.
  function start(kernel, classes, more) result(class)
    character(*), intent(in) :: kernel, classes(:)
    character(*), intent(in), optional :: more(:)
    character(2) :: class
    character(64) :: argument
    character(:), allocatable :: others
    integer :: many

    many = 1
    others = ""
    if (present(more)) then
      many = 1 + size(more)
      others = "; then "//listed(more)
    end if
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call get_command_argument(1, argument)
    if (command_argument_count() /= many .or. .not. any(classes == argument)) &
      call give_up(kernel//" takes the class of the problem as its argument: one of "//listed(classes)//others)
    class = argument(:2)
  end function

  ! The words in one line.
  function listed(words) result(line)
    character(*), intent(in) :: words(:)
    character(:), allocatable :: line
    integer :: i
    line = trim(words(1))
    do i = 2, size(words)
      line = line//", "//trim(words(i))
    end do
  end function

  ! Says why the problem cannot be solved, and ends. All ranks call it.
  subroutine give_up(sentence)
    character(*), intent(in) :: sentence
    if (rank == 0) write (error_unit, '(a)') sentence
    call MPI_Finalize()
    stop 2, quiet=.true.
  end subroutine

  pure logical function is_power_of_two(n)
    integer, intent(in) :: n
    is_power_of_two = n > 0 .and. iand(n, n - 1) == 0
  end function

  ! The first element, counted from 1, of block number `block` (from 0) when n elements are cut into
  ! `blocks` of equal size, give or take one.
  pure integer function first(block, blocks, n)
    integer, intent(in) :: block, blocks, n
    first = 1 + int(int(n, int64) * block / blocks)
  end function

  ! x y mod 2^46, of numbers below 2^46. With x = x1 2^23 + x0 and y split alike, what x1 y1 adds is a
  ! multiple of 2^46, and no product of halves needs more than 46 bits.
  elemental integer(int64) function times(x, y)
    integer(int64), intent(in) :: x, y
    integer(int64) :: x1, x0, y1, y0
    x1 = shiftr(x, 23)
    x0 = iand(x, half - 1)
    y1 = shiftr(y, 23)
    y0 = iand(y, half - 1)
    times = iand(x0 * y0 + shiftl(iand(x1 * y0 + x0 * y1, half - 1), 23), whole - 1)
  end function

  ! The state of the generator n steps after x: a^n x, with a^n by squaring.
  pure integer(int64) function ahead(x, n)
    integer(int64), intent(in) :: x, n
    integer(int64) :: square, left
    ahead = x
    square = a
    left = n
    do while (left > 0)
      if (btest(left, 0)) ahead = times(square, ahead)
      square = times(square, square)
      left = left / 2
    end do
  end function

  ! The next size(r) random numbers, between 0 and 1; `state` moves on.
  subroutine fill(state, r)
    integer(int64), intent(inout) :: state
    real(dp), intent(out) :: r(:)
    integer :: i
    do i = 1, size(r)
      state = times(a, state)
      r(i) = real(state, dp) * 2._dp**(-46)
    end do
  end subroutine

  ! Seconds since a moment in the past, the same for all ranks: none comes back before all have
  ! called.
  real(dp) function stopwatch()
    call MPI_Barrier(MPI_COMM_WORLD)
    stopwatch = MPI_Wtime()
  end function

  ! Is each value the published one, but for a relative error? A NaN agrees with
  ! nothing.
  pure logical function agrees(values, published, tolerance)
    real(dp), intent(in) :: values(:), published(:), tolerance
    agrees = size(values) == size(published)
    if (agrees) agrees = all(abs(values - published) <= tolerance * abs(published))
  end function

  ! Reports what was solved, how quickly, and whether the result is right, and ends the program:
  ! with status 1 when it is wrong. `seconds` is this rank's; the slowest counts. `operations`: how
  ! many the problem has, as published.
  subroutine finish(problem, seconds, operations, right)
    character(*), intent(in) :: problem
    real(dp), intent(in) :: seconds, operations
    logical, intent(in) :: right
    real(dp) :: slowest
    logical :: all_right

    call MPI_Reduce(seconds, slowest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD)
    call MPI_Allreduce(right, all_right, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD)
    if (rank == 0) then
      print '(a)', problem
      print '("ranks  ", i14)', ranks
      print '("seconds", f14.6)', slowest
      print '("Mop/s  ", f14.2)', operations / slowest / 1e6_dp
      print '(a)', trim(merge("verified    ", "NOT VERIFIED", all_right))
    end if
    call MPI_Finalize()
    if (.not. all_right) stop 1, quiet=.true.
  end subroutine
end module
