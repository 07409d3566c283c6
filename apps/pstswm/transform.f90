! transform.f90: the whole spherical harmonic transform, there and back: Fourier in longitude,
! Legendre in latitude, over the mesh of ranks.
!
! The Legendre transform joins the PY ranks of a column, in one of two ways.
!
! N, not pipelined: each rank of a column has all coefficients of the column's m. The inverse
! transform needs no communication. In the forward one each rank computes what its latitudes
! contribute to all coefficients, and a vector sum over the column adds these up (vectorsum.f90).
!
! P, pipelined: each rank of a column owns a block of the coefficients. In the inverse transform
! the blocks go round the ring of the column: a rank computes what the block it has contributes
! to its latitudes, while it passes the block on and receives the next. In the forward one, the
! sums go round, one for each block: a rank adds what its latitudes contribute, which it has
! computed while the sum was under way, and passes it on; after PY - 1 steps the sum is complete at
! the block's owner.
module transform
  use sphere, only: dp
  use clock, only: start_clock, stop_clock, in_legendre
  use options, only: algorithm, levels, ahead, overlap, update
  use mesh, only: nx, ny, x, y, lons, lats, column, cut, owned
  use exchange
  use fourier
  use legendre
  use vectorsum
  implicit none
  private

  ! The coefficients whose values this rank keeps, and those of them that it steps forward in time.
  ! There is room for some more, so that the vector sum has equal shares: up to last_place.
  integer, protected, public :: first_mine, last_mine, last_place
  integer, protected, public :: first_stepped, last_stepped

  logical :: pipelined
  type(fourier_type) :: inward, outward
  real(dp), pointer, contiguous :: fields_f(:, :, :, :), products_f(:, :, :, :)

  ! The tendencies of the coefficients that the rank steps forward (:, level, variable,
  ! coefficient), once computed.
  real(dp), pointer, contiguous, protected, public :: tendencies(:, :, :, :)

  ! N
  type(sum_type) :: total
  real(dp), pointer, contiguous :: sums(:)
  ! P
  real(dp), pointer, contiguous :: blocks(:, :), arrived(:, :)
  type(exchange_type), allocatable :: passing(:), adding(:)

  public :: make_transform, make_sums, to_fields, to_tendencies, whole_step, share_steps

contains

  subroutine make_transform()
    integer :: count
    pipelined = algorithm(2:2) == 'P'
    first_mine = 1
    last_mine = coefficients
    if (pipelined) then
      call cut(coefficients, ny, y, first_mine, count)
      last_mine = first_mine + count - 1
    end if
    last_place = last_mine
    if (.not. pipelined) last_place = ny * ((coefficients + ny - 1) / ny)
    allocate (fields_f(2, levels * fields, lats, size(owned(x)%m)))
    allocate (products_f(2, levels * products, lats, size(owned(x)%m)))
    call make_fourier(levels * fields, .false., outward)
    call make_fourier(levels * products, .true., inward)
    if (pipelined) then
      call make_ring()
    else
      allocate (sums(2 * levels * variables * last_place), source=0d0)
    end if
  end subroutine

  ! Prepares for the sums of the forward transform. `now` is the state that is stepped forward: with
  ! update=own a rank steps its share of it, which then goes to the others.
  subroutine make_sums(now)
    real(dp), target, contiguous, intent(in) :: now(:, :, :, :)
    real(dp), pointer, contiguous :: state(:)
    integer :: last
    first_stepped = first_mine
    last = last_place
    if (pipelined) then
      sums => blocks(:, ny - 1)
    else if (update == 'own') then
      state(1:size(now)) => now
      call make_sum(column, sums, total, state)
      sums => total%share
      first_stepped = 1 + y * (last_place / ny)
      last = first_stepped + last_place / ny - 1
    else
      call make_sum(column, sums, total)
    end if
    last_stepped = min(last, last_mine)
    tendencies(1:2, 1:levels, 1:variables, first_stepped:last) => sums
  end subroutine

  ! In step t of the inverse transform, a rank has the block of the rank t before it; in step t of
  ! the forward one, the sums of the block of the rank t + 1 before it.
  subroutine make_ring()
    integer :: step, longest, first
    call cut(coefficients, ny, 0, first, longest)
    allocate (blocks(2 * levels * variables * longest, 0:ny - 1))
    allocate (arrived(2 * levels * variables * longest, ny - 1))
    allocate (passing(ny - 1), adding(ny - 1))
    do step = 1, ny - 1
      call aim(passing(step), blocks(:, step - 1), blocks(:, step))
      call aim(adding(step), blocks(:, step - 1), arrived(:, step))
    end do

  contains

    subroutine aim(e, out, in)
      type(exchange_type), intent(inout) :: e
      real(dp), target, contiguous, intent(in) :: out(:), in(:)
      e%comm = column
      e%to = mod(y + 1, ny)
      e%from = modulo(y - 1, ny)
      e%tag = 1
      e%out => out
      e%in => in
    end subroutine
  end subroutine

  ! From coefficients to zeta, Phi', U and V on the grid: g(value, longitude, latitude), where the
  ! values are levels x fields.
  subroutine to_fields(s, g)
    real(dp), intent(in) :: s(2, levels, variables, first_mine:last_mine)
    real(dp), contiguous, target, intent(inout) :: g(:, :, :)
    integer :: first
    call outward_legendre(s)
    do first = 1, lats, batch()
      call to_grid(outward, first, fields_f, g(:, :, first:first + batch() - 1))
    end do
  end subroutine

  ! What the ranks of a column have stepped forward, each its share, comes to all of them.
  subroutine share_steps()
    if (.not. pipelined .and. update == 'own') call spread_shares(total)
  end subroutine

  ! From the products on the grid, which are overwritten, to the coefficients' tendencies.
  subroutine to_tendencies(g)
    real(dp), contiguous, target, intent(inout) :: g(:, :, :)
    integer :: first
    do first = 1, lats, batch()
      call to_waves(inward, first, g(:, :, first:first + batch() - 1), products_f)
    end do
    call inward_legendre()
  end subroutine

  ! There and back: from coefficients to their tendencies. `multiply` makes products of the fields
  ! of the `batch` latitudes from the given one on; g and p have room for them.
  subroutine whole_step(s, multiply, g, p)
    real(dp), intent(in) :: s(2, levels, variables, first_mine:last_mine)
    real(dp), contiguous, target, intent(inout) :: g(:, :, :), p(:, :, :)
    interface
      subroutine multiply(first, g, p)
        import :: dp
        integer, intent(in) :: first
        real(dp), contiguous, intent(in) :: g(:, :, :)
        real(dp), contiguous, intent(inout) :: p(:, :, :)
      end subroutine
    end interface
    integer :: first
    call outward_legendre(s)
    do first = 1, lats, batch()
      call to_grid(outward, first, fields_f, g)
      call multiply(first, g, p)
      call to_waves(inward, first, p, products_f)
    end do
    call inward_legendre()
  end subroutine

  subroutine outward_legendre(s)
    real(dp), intent(in) :: s(2, levels, variables, first_mine:last_mine)
    if (pipelined) then
      call pass_blocks(s)
    else
      call waves_from_coefficients(first_mine, last_mine, s, .true., fields_f)
    end if
  end subroutine

  subroutine inward_legendre()
    if (pipelined) then
      call pass_sums()
    else
      call coefficients_from_waves(first_mine, last_mine, products_f, total%v)
      call sum_shares(total)
      if (update == 'all') call spread_shares(total)
    end if
  end subroutine

  subroutine pass_blocks(s)
    real(dp), intent(in) :: s(2 * levels * variables * (last_mine - first_mine + 1))
    integer :: step
    fields_f = 0
    blocks(:size(s), 0) = s
    call post_ahead(passing)
    do step = 0, ny - 1
      if (step < ny - 1 .and. overlap) call begin(passing(step + 1))
      call compute(modulo(y - step, ny), blocks(:, step))
      if (step < ny - 1) then
        if (.not. overlap) call begin(passing(step + 1))
        call complete(passing(step + 1))
      end if
    end do

  contains

    subroutine compute(owner, block)
      integer, intent(in) :: owner
      real(dp), intent(in) :: block(*)
      integer :: first, count
      call cut(coefficients, ny, owner, first, count)
      call waves_from_coefficients(first, first + count - 1, block, .false., fields_f)
    end subroutine
  end subroutine

  ! The sum that comes last is that of the rank's own block.
  subroutine pass_sums()
    integer :: step
    call post_ahead(adding)
    call compute(modulo(y - 1, ny), blocks(:, 0))
    do step = 1, ny - 1
      call begin(adding(step))
      if (.not. overlap) call complete(adding(step))
      call compute(modulo(y - 1 - step, ny), blocks(:, step))
      if (overlap) call complete(adding(step))
      blocks(:, step) = blocks(:, step) + arrived(:, step)
    end do

  contains

    subroutine compute(owner, block)
      integer, intent(in) :: owner
      real(dp), intent(out) :: block(*)
      integer :: first, count
      call cut(coefficients, ny, owner, first, count)
      call coefficients_from_waves(first, first + count - 1, products_f, block)
    end subroutine
  end subroutine

  subroutine post_ahead(exchanges)
    type(exchange_type), intent(inout) :: exchanges(:)
    integer :: step
    if (.not. ahead) return
    do step = 1, size(exchanges)
      call post(exchanges(step))
    end do
  end subroutine

  subroutine begin(e)
    type(exchange_type), intent(inout) :: e
    call start_clock()
    if (.not. ahead) call post(e)
    call start(e)
    call stop_clock(in_legendre)
  end subroutine

  subroutine complete(e)
    type(exchange_type), intent(inout) :: e
    call start_clock()
    call finish(e)
    call stop_clock(in_legendre)
  end subroutine
end module
