! mg: Poisson's equation on a periodic cube, by multigrid.
!
!   make apps && dist/bin/mpiexec -n 4 build/apps/mg W
!
! A u = v, where A is a discrete Laplacian of 27 points, and v is 1 in ten points, -1 in ten others
! and else 0. Each iteration takes the residual r = v - A u, and adds an approximate solution of
! A z = r (a V cycle): the residual is projected to coarser and coarser grids, each with half the
! points a dimension; on the coarsest, of 2 x 2 x 2 points, it is smoothed; on the way back z is
! interpolated to the finer grid and smoothed there.
!
! Ranks form a grid of up to three dimensions, and each has a block of every fine grid, with one
! point more on each side: the halo, which belongs to its neighbours. Planes of the halo are
! exchanged dimension by dimension, so that edges and corners come along, straight from and into
! the array by derived datatypes. When blocks would become smaller than two points, all ranks gather
! the whole of the next grid (MPI_Allgather) and go on with that alone, each for itself: such grids
! have hardly more points than there are ranks.
! The number of ranks must be a power of two.
program mg
  use mpi_f08
  use nas
  implicit none

  ! Stencils: what the point itself counts, and its 6 neighbours by a face, 12 by an edge and 8 by a
  ! corner.
  real(dp), parameter :: laplacian(0:3) = [-8, 0, 0, 0] / 3._dp + [0, 0, 2, 1] / 12._dp
  real(dp), parameter :: smoother(0:3) = [-3 / 8._dp, 1 / 32._dp, -1 / 64._dp, 0._dp]
  real(dp), parameter :: projection(0:3) = [1 / 2._dp, 1 / 4._dp, 1 / 8._dp, 1 / 16._dp]
  integer, parameter :: charges = 10                      ! of each sign

  ! One grid, or this rank's block of it: `r` is the residual, or what is to be solved for; `u` the
  ! solution. All have a halo of one point.
  type level
    integer :: n                                          ! points a dimension, everywhere
    integer :: m(3), start(3)                             ! points of the block, points before it
    logical :: whole                                      ! does every rank have all of the grid?
    real(dp), allocatable :: u(:, :, :), r(:, :, :)
    type(MPI_Datatype) :: own(2, 3), halo(2, 3)           ! planes: low and high, by dimension
  end type

  type(level), allocatable, asynchronous :: grids(:)      ! grid k has 2^k points a dimension
  real(dp), allocatable :: v(:, :, :)
  type(MPI_Comm) :: ring                                  ! the ranks as a periodic grid
  integer :: shape_of_ranks(3), place(3), neighbour(2, 3)
  integer :: top, iterations, iteration
  real(dp) :: published, tolerance, norm, begin, seconds
  character(2) :: class
  character(48) :: problem

  class = start("mg", ["S ", "W ", "A ", "W2"])
  tolerance = 1e-8_dp
  select case (class)
  case ("W")
    call set_problem(7, 4, 0.6467329375339e-05_dp)
  case ("A")
    call set_problem(8, 4, 0.2433365309069e-05_dp)
  case ("W2")       ! class W of NPB 2, whose norm is rounding errors alone: only its size is known
    call set_problem(6, 40, 0.250391406439e-17_dp)
    tolerance = 1
  case default
    call set_problem(5, 4, 0.5307707005734e-04_dp)
  end select
  call place_ranks()
  call make_grids()
  v = grids(top)%r                                        ! its shape
  call one_cycle()  ! not timed: memory and connections come into being
  call set_charges()
  grids(top)%u = 0

  begin = stopwatch()
  call residual()
  do iteration = 1, iterations
    call one_cycle()
    call residual()
  end do
  norm = norm_of_residual()
  seconds = MPI_Wtime() - begin

  if (rank == 0) print '("norm of the residual", es21.13, ", should be", es21.13)', norm, published
  write (problem, '("MG class ", a, ": ", i0, "^3 points, ", i0, " iterations")') trim(class), 2**top, iterations
  call finish(trim(problem), seconds, 58._dp * iterations * 8._dp**top, &
    agrees([norm], [published], tolerance))

contains

  subroutine set_problem(finest, cycles, result)
    integer, intent(in) :: finest, cycles
    real(dp), intent(in) :: result
    top = finest
    iterations = cycles
    published = result
  end subroutine

  ! Makes the grid of ranks: as near to a cube as can be, the last dimension, whose planes lie
  ! together in memory, cut most.
  subroutine place_ranks()
    integer :: d
    if (.not. is_power_of_two(ranks)) call give_up("mg goes on a number of ranks that is a power of two")
    shape_of_ranks = 0
    call MPI_Dims_create(ranks, 3, shape_of_ranks)
    shape_of_ranks = shape_of_ranks(3:1:-1)
    if (2**(top - 1) < maxval(shape_of_ranks)) call give_up("mg has too few points in this class for this many ranks")
    call MPI_Cart_create(MPI_COMM_WORLD, 3, shape_of_ranks, [.true., .true., .true.], .false., ring)
    call MPI_Cart_coords(ring, rank, 3, place)
    do d = 1, 3
      call MPI_Cart_shift(ring, d - 1, 1, neighbour(1, d), neighbour(2, d))
    end do
  end subroutine

  ! Allocates all grids, from 2 points a dimension to the finest.
  subroutine make_grids()
    integer :: k
    allocate (grids(top))
    do k = 1, top
      associate (g => grids(k))
        g%n = 2**k
        g%whole = g%n < 2 * maxval(shape_of_ranks)
        g%m = g%n / merge(1, shape_of_ranks, g%whole)
        g%start = merge(0, place, g%whole) * g%m
        allocate (g%u(0:g%m(1) + 1, 0:g%m(2) + 1, 0:g%m(3) + 1), g%r(0:g%m(1) + 1, 0:g%m(2) + 1, 0:g%m(3) + 1))
        g%u = 0
        g%r = 0
      end associate
      if (.not. grids(k)%whole) call make_planes(grids(k))
    end do
  end subroutine

  ! Makes the datatypes of the planes that are exchanged: in dimension d, those at 1 and m go out,
  ! those at 0 and m + 1 come in. They have the halo of the dimensions before d, which are up to
  ! date by then, not that of the dimensions behind.
  subroutine make_planes(g)
    type(level), intent(inout) :: g
    integer :: d, size(3), from(3)
    do d = 1, 3
      size = g%m
      from = 1
      size(:d - 1) = g%m(:d - 1) + 2
      from(:d - 1) = 0
      size(d) = 1
      call make_plane(g, d, size, from, 1, g%own(1, d))
      call make_plane(g, d, size, from, g%m(d), g%own(2, d))
      call make_plane(g, d, size, from, 0, g%halo(1, d))
      call make_plane(g, d, size, from, g%m(d) + 1, g%halo(2, d))
    end do
  end subroutine

  subroutine make_plane(g, d, size, from, at, plane)
    type(level), intent(in) :: g
    integer, intent(in) :: d, size(3), from(3), at
    type(MPI_Datatype), intent(out) :: plane
    integer :: begin_at(3)
    begin_at = from
    begin_at(d) = at
    call MPI_Type_create_subarray(3, g%m + 2, size, begin_at, MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, plane)
    call MPI_Type_commit(plane)
  end subroutine

  ! Fills the halo of x, an array of grid g.
  subroutine exchange(g, x)
    type(level), intent(in) :: g
    real(dp), intent(inout), contiguous, asynchronous :: x(0:, 0:, 0:)
    type(MPI_Request) :: request(2)
    integer :: d
    do d = 1, 3
      if (g%whole .or. shape_of_ranks(d) == 1) then
        call wrap(x, d, g%m(d))
      else
        call MPI_Irecv(x, 1, g%halo(1, d), neighbour(1, d), 2, ring, request(1))
        call MPI_Irecv(x, 1, g%halo(2, d), neighbour(2, d), 1, ring, request(2))
        call MPI_Send(x, 1, g%own(1, d), neighbour(1, d), 1, ring)
        call MPI_Send(x, 1, g%own(2, d), neighbour(2, d), 2, ring)
        call MPI_Waitall(2, request, MPI_STATUSES_IGNORE)
      end if
    end do
  end subroutine

  ! The same in a dimension that is not cut: the rank is its own neighbour.
  subroutine wrap(x, d, m)
    real(dp), intent(inout), contiguous :: x(0:, 0:, 0:)
    integer, intent(in) :: d, m
    select case (d)
    case (1)
      x(0, :, :) = x(m, :, :)
      x(m + 1, :, :) = x(1, :, :)
    case (2)
      x(:, 0, :) = x(:, m, :)
      x(:, m + 1, :) = x(:, 1, :)
    case (3)
      x(:, :, 0) = x(:, :, m)
      x(:, :, m + 1) = x(:, :, 1)
    end select
  end subroutine

  ! r = v - A u on the finest grid.
  subroutine residual()
    grids(top)%r = v
    call add_stencil(grids(top)%m, -laplacian, grids(top)%u, grids(top)%r)
    call exchange(grids(top), grids(top)%r)
  end subroutine

  ! One V cycle: u of the finest grid gets nearer to what its r asks for.
  subroutine one_cycle()
    integer :: k
    do k = top, 2, -1
      call project(grids(k), grids(k - 1))
    end do
    grids(1)%u = 0
    call smooth(grids(1))
    do k = 2, top
      if (k < top) grids(k)%u = 0
      call interpolate(grids(k - 1), grids(k))
      if (k < top) then
        call add_stencil(grids(k)%m, -laplacian, grids(k)%u, grids(k)%r)
        call exchange(grids(k), grids(k)%r)
      else
        call residual()
      end if
      call smooth(grids(k))
    end do
  end subroutine

  ! u = u + S r.
  subroutine smooth(g)
    type(level), intent(inout) :: g
    call add_stencil(g%m, smoother, g%r, g%u)
    call exchange(g, g%u)
  end subroutine

  ! y = y + C x, inside the block. The sums over 4 neighbours in the plane across a line serve three
  ! points of the line.
  subroutine add_stencil(m, c, x, y)
    integer, intent(in) :: m(3)
    real(dp), intent(in) :: c(0:3)
    real(dp), intent(in), contiguous :: x(0:, 0:, 0:)
    real(dp), intent(inout), contiguous :: y(0:, 0:, 0:)
    real(dp) :: near(0:m(1) + 1), far(0:m(1) + 1)
    integer :: i, j, k
    do k = 1, m(3)
      do j = 1, m(2)
        near = x(:, j - 1, k) + x(:, j + 1, k) + x(:, j, k - 1) + x(:, j, k + 1)
        far = x(:, j - 1, k - 1) + x(:, j + 1, k - 1) + x(:, j - 1, k + 1) + x(:, j + 1, k + 1)
        do i = 1, m(1)
          y(i, j, k) = y(i, j, k) + c(0) * x(i, j, k) + c(1) * (x(i - 1, j, k) + x(i + 1, j, k) + near(i)) &
            + c(2) * (near(i - 1) + near(i + 1) + far(i)) + c(3) * (far(i - 1) + far(i + 1))
        end do
      end do
    end do
  end subroutine

  ! The residual of the coarser grid: its point i is point 2 i of the finer one, with what is
  ! around.
  subroutine project(fine, coarse)
    type(level), intent(in) :: fine
    type(level), intent(inout) :: coarse
    real(dp), allocatable :: part(:, :, :)
    if (coarse%whole .and. .not. fine%whole) then
      allocate (part(fine%m(1) / 2, fine%m(2) / 2, fine%m(3) / 2))
      call project_block(fine%m / 2, fine%r, part)
      call gather(part, coarse)
    else
      call project_block(coarse%m, fine%r, coarse%r(1:coarse%m(1), 1:coarse%m(2), 1:coarse%m(3)))
    end if
    call exchange(coarse, coarse%r)
  end subroutine

  subroutine project_block(m, x, y)
    integer, intent(in) :: m(3)
    real(dp), intent(in), contiguous :: x(0:, 0:, 0:)
    real(dp), intent(inout) :: y(:, :, :)
    real(dp) :: near(0:2 * m(1) + 1), far(0:2 * m(1) + 1)
    integer :: i, j, k, a, b
    do k = 1, m(3)
      do j = 1, m(2)
        a = 2 * j
        b = 2 * k
        near = x(:, a - 1, b) + x(:, a + 1, b) + x(:, a, b - 1) + x(:, a, b + 1)
        far = x(:, a - 1, b - 1) + x(:, a + 1, b - 1) + x(:, a - 1, b + 1) + x(:, a + 1, b + 1)
        do i = 1, m(1)
          y(i, j, k) = projection(0) * x(2 * i, a, b) &
            + projection(1) * (x(2 * i - 1, a, b) + x(2 * i + 1, a, b) + near(2 * i)) &
            + projection(2) * (near(2 * i - 1) + near(2 * i + 1) + far(2 * i)) &
            + projection(3) * (far(2 * i - 1) + far(2 * i + 1))
        end do
      end do
    end do
  end subroutine

  ! All ranks get the whole of a grid of which each has made a part.
  subroutine gather(part, g)
    real(dp), intent(in), contiguous :: part(:, :, :)
    type(level), intent(inout) :: g
    real(dp) :: parts(size(part, 1), size(part, 2), size(part, 3), 0:ranks - 1)
    integer :: one, at(3), low(3), high(3)
    call MPI_Allgather(part, size(part), MPI_DOUBLE_PRECISION, parts, size(part), MPI_DOUBLE_PRECISION, ring)
    do one = 0, ranks - 1
      call MPI_Cart_coords(ring, one, 3, at)
      low = at * shape(part) + 1
      high = low + shape(part) - 1
      g%r(low(1):high(1), low(2):high(2), low(3):high(3)) = parts(:, :, :, one)
    end do
  end subroutine

  ! u = u + Q z, where z is the solution on the coarser grid: trilinear interpolation. Points of the
  ! coarse grid have even places in the fine one; an odd place is half way between two of them.
  subroutine interpolate(coarse, fine)
    type(level), intent(in) :: coarse
    type(level), intent(inout) :: fine
    integer :: before(3)
    before = merge(fine%start / 2, 0, coarse%whole .and. .not. fine%whole)
    call interpolate_block(fine%m, before, coarse%u, fine%u)
    call exchange(fine, fine%u)
  end subroutine

  subroutine interpolate_block(m, before, z, u)
    integer, intent(in) :: m(3), before(3)
    real(dp), intent(in), contiguous :: z(0:, 0:, 0:)
    real(dp), intent(inout), contiguous :: u(0:, 0:, 0:)
    real(dp) :: line(0:m(1) / 2)
    integer :: i, j, k, j0, j1, k0, k1, low, high
    low = before(1)
    high = before(1) + m(1) / 2
    do k = 1, m(3)
      k0 = before(3) + k / 2                              ! the coarse planes below and above
      k1 = before(3) + (k + 1) / 2
      do j = 1, m(2)
        j0 = before(2) + j / 2
        j1 = before(2) + (j + 1) / 2
        line = 0.25_dp * (z(low:high, j0, k0) + z(low:high, j1, k0) + z(low:high, j0, k1) + z(low:high, j1, k1))
        do i = 1, m(1) / 2
          u(2 * i - 1, j, k) = u(2 * i - 1, j, k) + 0.5_dp * (line(i - 1) + line(i))
          u(2 * i, j, k) = u(2 * i, j, k) + line(i)
        end do
      end do
    end do
  end subroutine

  ! The root of the mean square of the residual.
  real(dp) function norm_of_residual()
    real(dp) :: sum_of_squares
    associate (g => grids(top))
      sum_of_squares = sum(g%r(1:g%m(1), 1:g%m(2), 1:g%m(3))**2)
    end associate
    call MPI_Allreduce(MPI_IN_PLACE, sum_of_squares, 1, MPI_DOUBLE_PRECISION, MPI_SUM, ring)
    norm_of_residual = sqrt(sum_of_squares / 8._dp**top)
  end function

  ! v is 1 where random numbers, one for each point, are greatest, and -1 where they are smallest.
  ! Each rank finds ten of either among its own, and all ranks choose among those of all.
  subroutine set_charges()
    real(dp) :: mine(2, charges, 2), all(2, charges, 2, ranks) ! value and place; great, small
    real(dp) :: line(grids(top)%m(1))
    integer(int64) :: state, before
    integer :: i, j, k, kind

    mine(1, :, :) = -1
    associate (g => grids(top))
      do k = 1, g%m(3)
        do j = 1, g%m(2)
          before = g%start(1) + int(g%n, int64) * (g%start(2) + j - 1 + int(g%n, int64) * (g%start(3) + k - 1))
          state = ahead(seed, before)
          call fill(state, line)
          do i = 1, g%m(1)
            call keep(line(i), real(before + i - 1, dp), mine(:, :, 1))
            call keep(1 - line(i), real(before + i - 1, dp), mine(:, :, 2))
          end do
        end do
      end do
    end associate
    call MPI_Allgather(mine, size(mine), MPI_DOUBLE_PRECISION, all, size(mine), MPI_DOUBLE_PRECISION, ring)
    mine(1, :, :) = -1
    v = 0
    do kind = 1, 2
      do i = 1, ranks
        do j = 1, charges
          call keep(all(1, j, kind, i), all(2, j, kind, i), mine(:, :, kind))
        end do
      end do
      do i = 1, charges
        call set(int(mine(2, i, kind), int64), merge(1._dp, -1._dp, kind == 1))
      end do
    end do
    call exchange(grids(top), v)
  end subroutine

  ! Keeps a value and its place if it is among the greatest, which are in order.
  pure subroutine keep(value, at, greatest)
    real(dp), intent(in) :: value, at
    real(dp), intent(inout) :: greatest(:, :)
    integer :: i
    if (value <= greatest(1, charges)) return
    i = charges
    do while (i > 1)
      if (greatest(1, i - 1) >= value) exit
      greatest(:, i) = greatest(:, i - 1)
      i = i - 1
    end do
    greatest(:, i) = [value, at]
  end subroutine

  ! Sets v in a point, given by its number among all, if this rank has it.
  subroutine set(number, value)
    integer(int64), intent(in) :: number
    real(dp), intent(in) :: value
    integer :: at(3)
    associate (g => grids(top))
      at = int([mod(number, int(g%n, int64)), mod(number / g%n, int(g%n, int64)), number / g%n / g%n]) - g%start + 1
      if (all(at >= 1 .and. at <= g%m)) v(at(1), at(2), at(3)) = value
    end associate
  end subroutine
end program
