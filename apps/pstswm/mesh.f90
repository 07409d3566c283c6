! mesh.f90: the logical mesh of ranks, and which rank owns what of the three domains.
!
!   physical domain   longitudes x latitudes      PX ranks cut the longitudes, PY the latitudes
!   Fourier domain    wave numbers m x latitudes  PX ranks cut the m, PY the latitudes
!   spectral domain   pairs (m, n)                PX ranks cut the m; with the pipelined Legendre
!                                                 transform, PY cut what is left, else each has it
!
! The levels are never cut (but within the transposed Fourier transform). A rank owns a latitude
! of the northern hemisphere together with its mirror, because the Legendre functions are even or
! odd. Its latitudes are numbered 1, 2, 3, ...: north, south, north, south from the pole on.
module mesh
  use mpi_f08
  use options, only: truncation, longitudes, latitudes, algorithm, order, px, py, &
    transpose_by, pattern, sum_by, update
  implicit none
  private
  integer, protected, public :: rank, ranks
  integer, protected, public :: nx, ny         ! PX and PY
  integer, protected, public :: x, y           ! where this rank stands, from 0
  type(MPI_Comm), protected, public :: world
  type(MPI_Comm), protected, public :: row     ! the nx ranks with this y: they share latitudes
  type(MPI_Comm), protected, public :: column  ! the ny ranks with this x: they share the m

  integer, protected, public :: first_lon, lons       ! the rank's longitudes
  integer, protected, public :: first_pair, pairs     ! its pairs of latitudes
  integer, protected, public :: lats                  ! 2 pairs

  type :: wave_numbers
    integer, allocatable :: m(:)
  end type
  type(wave_numbers), allocatable, protected, public :: owned(:)    ! by x = 0 ... nx - 1

  public :: make_mesh, cut, is_power_of_2, reversed

contains

  ! Puts the ranks on the mesh. `problem` is a sentence if that is not possible, else empty.
  subroutine make_mesh(problem)
    character(len=:), allocatable, intent(out) :: problem
    integer :: dims(2), place(2)
    character(len=200) :: text
    text = ''
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    dims = [py, px]                       ! latitude first: Dims_create puts the larger one first
    if (px == 0) call MPI_Dims_create(ranks, 2, dims)
    ny = dims(1)
    nx = dims(2)
    if (nx * ny /= ranks) then
      write (text, '("mesh=", i0, "x", i0, " needs ", i0, " ranks, but there are ", i0)') &
        nx, ny, nx * ny, ranks
    else if (ny > latitudes / 2) then
      write (text, '("mesh: PY=", i0, " is more than the ", i0, " pairs of latitudes")') &
        ny, latitudes / 2
    else if (nx > truncation + 1) then
      write (text, '("mesh: PX=", i0, " is more than the ", i0, " wave numbers")') &
        nx, truncation + 1
    else if (algorithm(1:1) == 'D' .and. &
        (.not. is_power_of_2(nx) .or. mod(longitudes, nx) /= 0)) then
      write (text, '("algorithm=", a, " needs a PX that is a power of 2 and divides the ", i0, &
        &" longitudes, PX is ", i0)') trim(algorithm), longitudes, nx
    else if (algorithm(1:1) == 'T' .and. transpose_by == 'hand' .and. pattern == 'swap' .and. &
        .not. is_power_of_2(nx)) then
      write (text, '("pattern=swap needs a PX that is a power of 2, PX is ", i0, &
        &": take pattern=ring")') nx
    else if (algorithm(2:2) == 'N' .and. sum_by == 'halving' .and. .not. is_power_of_2(ny)) then
      write (text, '("sum=halving needs a PY that is a power of 2, PY is ", i0, &
        &": take sum=ring")') ny
    else if (algorithm(2:2) == 'N' .and. update == 'own' .and. sum_by(1:9) == 'allreduce') then
      write (text, '("update=own needs a sum in two halves: not sum=", a)') trim(sum_by)
    end if
    problem = trim(text)
    if (problem /= '') return

    if (order == 'cart') then
      call MPI_Cart_create(MPI_COMM_WORLD, 2, [ny, nx], [.true., .true.], .true., world)
      call MPI_Comm_rank(world, rank)
      call MPI_Cart_coords(world, rank, 2, place)
      y = place(1)
      x = place(2)
      call MPI_Cart_sub(world, [.false., .true.], row)
      call MPI_Cart_sub(world, [.true., .false.], column)
    else
      call MPI_Comm_dup(MPI_COMM_WORLD, world)
      call MPI_Comm_rank(world, rank)
      if (order == 'row') then
        x = mod(rank, nx)
        y = rank / nx
      else
        x = rank / ny
        y = mod(rank, ny)
      end if
      call MPI_Comm_split(world, y, x, row)
      call MPI_Comm_split(world, x, y, column)
    end if
    call cut(longitudes, nx, x, first_lon, lons)
    call cut(latitudes / 2, ny, y, first_pair, pairs)
    lats = 2 * pairs
    call deal_wave_numbers()
  end subroutine

  ! Which m belongs to which x. There are truncation - m + 1 coefficients of wave number m, so
  ! small m are more work than large ones.
  !
  ! Transposed: dealt out like cards, forth and back (0 1 2 2 1 0 0 1 ...), which is fair.
  ! Distributed: the FFT leaves on each rank every nx-th m, as its butterfly has it.
  subroutine deal_wave_numbers()
    integer :: m, i, turn
    allocate (owned(0:nx - 1))
    do i = 0, nx - 1
      allocate (owned(i)%m(0))
    end do
    do m = 0, truncation
      if (algorithm(1:1) == 'D') then
        i = reversed(mod(m, nx))
      else
        turn = mod(m, 2 * nx)
        i = min(turn, 2 * nx - 1 - turn)
      end if
      owned(i)%m = [owned(i)%m, m]
    end do
  end subroutine

  ! Cuts `whole` things into `parts` runs of nearly equal length: the run number `part` (from 0)
  ! begins with the thing number `first` (from 1) and has `length` of them.
  pure subroutine cut(whole, parts, part, first, length)
    integer, intent(in) :: whole, parts, part
    integer, intent(out) :: first, length
    first = 1 + part * (whole / parts) + min(part, mod(whole, parts))
    length = whole / parts
    if (part < mod(whole, parts)) length = length + 1
  end subroutine

  pure logical function is_power_of_2(number)
    integer, intent(in) :: number
    is_power_of_2 = iand(number, number - 1) == 0
  end function

  ! The bits of an x, the last first: nx is a power of 2.
  pure integer function reversed(number)
    integer, intent(in) :: number
    integer :: bit
    reversed = 0
    bit = 1
    do while (bit < nx)
      reversed = 2 * reversed + merge(1, 0, iand(number, bit) /= 0)
      bit = 2 * bit
    end do
  end function
end module
