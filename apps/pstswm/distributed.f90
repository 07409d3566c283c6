! distributed.f90: the Fourier transform in longitude where the data are, the D of DP.
!
! The N points of a circle lie on PX = 2^q ranks, N / PX on each. The transform "by decimation in
! frequency" makes of two halves a and b of a circle two circles of half the length,
!   a(j) + b(j)                         whose coefficients are the even ones,
!   (a(j) - b(j)) exp(-2 pi i j / N)    whose coefficients are the odd ones.
! While a circle lies on several ranks, each rank of the first half swaps its points with its
! partner in the second half: log2 PX swaps of equal size. Then each rank has a circle of its own,
! which it transforms alone: its coefficients are those k with k = r modulo PX, where r has the
! bits of the rank's number in reverse.
!
! Two real lines are packed into one complex one (packing.f90), so wave number m needs k = m and
! k = N - m, which the rank with residue PX - r has: one more swap. In all 1 + log2 PX of them
! (paper, section 2).
!
! With overlap the latitudes are two parts: while the messages of one are under way, the other is
! computed, at the cost of twice as many messages.
module distributed
  use sphere, only: dp, pi
  use clock, only: start_clock, stop_clock, in_fourier
  use fft
  use options, only: longitudes, ahead, overlap
  use mesh, only: nx, x, lons, lats, row, owned, reversed
  use packing
  use exchange
  implicit none
  private

  type, public :: distributed_type
    integer :: pairs = 0, stages = 0, parts = 1
    integer :: residue = 0, mirror = 0            ! r, and the rank that has PX - r
    integer, allocatable :: bounds(:)        ! part p: latitudes bounds(p) + 1 ... bounds(p + 1)
    type(fft_plan) :: plan
    real(dp), allocatable :: work(:)
    real(dp), allocatable :: twiddles(:, :, :)    ! exp(-2 pi i j / length): (:, lons, stages)
    real(dp), pointer, contiguous :: z(:, :, :, :) => null()     ! (:, pair, lon, lat)
    real(dp), pointer, contiguous :: theirs(:, :) => null()      ! z of partners, by stage
    real(dp), pointer, contiguous :: given(:) => null(), taken(:) => null()    ! of the last swap
    type(exchange_type), allocatable :: swaps(:, :)       ! by part, stage
    type(exchange_type), allocatable :: mirrors(:)        ! by part
  end type
  public :: make_distributed, distributed_to_waves, distributed_to_grid

contains

  ! Prepares for `values` values at each point, an even number.
  subroutine make_distributed(values, to_waves, s)
    integer, intent(in) :: values
    logical, intent(in) :: to_waves
    type(distributed_type), intent(out) :: s
    integer :: stage, part, distance, j, from, to, mine, others
    logical :: possible
    s%pairs = values / 2
    s%parts = merge(2, 1, overlap .and. lats > 1)
    s%bounds = [(lats * j / s%parts, j = 0, s%parts)]
    call fft_make(lons, s%plan, possible)
    do while (2**s%stages < nx)
      s%stages = s%stages + 1
    end do
    s%residue = reversed(x)
    s%mirror = reversed(modulo(-s%residue, nx))
    allocate (s%z(2, s%pairs, lons, lats), s%work(values * lons))
    allocate (s%theirs(values * lons * lats, s%stages), s%twiddles(2, lons, s%stages))
    allocate (s%swaps(s%parts, s%stages), s%mirrors(s%parts))
    do stage = 1, s%stages
      distance = nx / 2**stage
      do j = 1, lons
        s%twiddles(:, j, stage) = turn(mod(x, distance) * lons + j - 1, 2 * distance * lons)
      end do
      do part = 1, s%parts
        from = values * lons * s%bounds(part)
        to = values * lons * s%bounds(part + 1)
        associate (e => s%swaps(part, stage))
          e%comm = row
          e%tag = 2 + part
          e%to = ieor(x, distance)
          e%from = e%to
          e%out(1:to - from) => s%z(:, :, :, s%bounds(part) + 1:s%bounds(part + 1))
          e%in => s%theirs(from + 1:to, stage)
        end associate
      end do
    end do
    mine = values * size(owned(x)%m)
    others = values * size(owned(s%mirror)%m)
    allocate (s%given(merge(others, mine, to_waves) * lats))
    allocate (s%taken(merge(mine, others, to_waves) * lats))
    do part = 1, s%parts
      associate (e => s%mirrors(part), from => s%bounds(part), to => s%bounds(part + 1))
        e%comm = row
        e%tag = 4 + part
        e%to = s%mirror
        e%from = e%to
        e%out => s%given(from * size(s%given) / lats + 1:to * size(s%given) / lats)
        e%in => s%taken(from * size(s%taken) / lats + 1:to * size(s%taken) / lats)
      end associate
    end do
  end subroutine

  ! exp(-2 pi i k / n)
  pure function turn(k, n)
    integer, intent(in) :: k, n
    real(dp) :: turn(2)
    turn = [cos(2 * pi * k / n), -sin(2 * pi * k / n)]
  end function

  ! From the grid to wave numbers.
  subroutine distributed_to_waves(s, g, f)
    type(distributed_type), intent(inout) :: s
    real(dp), intent(in) :: g(2, s%pairs, lons, lats)
    real(dp), intent(inout) :: f(2, 2 * s%pairs, lats, size(owned(x)%m))
    integer :: stage, part, lat
    s%z = g
    call post_ahead(s)
    do part = 1, s%parts
      if (s%stages > 0) call begin(s%swaps(part, 1))
    end do
    do stage = 1, s%stages
      do part = 1, s%parts
        call complete(s%swaps(part, stage))
        call fold(part, stage)
        if (stage < s%stages) call begin(s%swaps(part, stage + 1))
      end do
    end do
    do part = 1, s%parts
      do lat = s%bounds(part) + 1, s%bounds(part + 1)
        call fft_run(s%plan, -1, s%pairs, s%z(:, :, :, lat), s%work)
      end do
      if (s%mirror /= x) then
        call give(part, s%mirrors(part)%out)
        call begin(s%mirrors(part))
      end if
    end do
    do part = 1, s%parts
      if (s%mirror /= x) call complete(s%mirrors(part))
      call take(part, s%mirrors(part)%in)
    end do

  contains

    ! One butterfly with the partner's points.
    subroutine fold(part, stage)
      integer, intent(in) :: part, stage
      logical :: lower
      integer :: lat
      lower = x < s%swaps(part, stage)%to
      do lat = s%bounds(part) + 1, s%bounds(part + 1)
        call fold_circle(lower, s%twiddles(:, :, stage), s%z(:, :, :, lat), &
          s%theirs(2 * s%pairs * lons * (lat - 1) + 1:, stage))
      end do
    end subroutine

    subroutine fold_circle(lower, w, z, other)
      logical, intent(in) :: lower
      real(dp), intent(in) :: w(2, lons), other(2, s%pairs, lons)
      real(dp), intent(inout) :: z(2, s%pairs, lons)
      real(dp) :: re, im
      integer :: j, k
      if (lower) then
        z = z + other
        return
      end if
      do j = 1, lons
        do k = 1, s%pairs
          re = other(1, k, j) - z(1, k, j)
          im = other(2, k, j) - z(2, k, j)
          z(1, k, j) = re * w(1, j) - im * w(2, j)
          z(2, k, j) = re * w(2, j) + im * w(1, j)
        end do
      end do
    end subroutine

    ! What the mirror needs: Z(N - m) for its m.
    subroutine give(part, out)
      integer, intent(in) :: part
      real(dp), intent(out) :: out(2, s%pairs, size(owned(s%mirror)%m), *)
      integer :: lat, i
      do lat = s%bounds(part) + 1, s%bounds(part + 1)
        do i = 1, size(owned(s%mirror)%m)
          out(:, :, i, lat - s%bounds(part)) = &
            s%z(:, :, place(longitudes - owned(s%mirror)%m(i)), lat)
        end do
      end do
    end subroutine

    subroutine take(part, in)
      integer, intent(in) :: part
      real(dp), intent(in) :: in(2, s%pairs, size(owned(x)%m), *)
      integer :: lat, i, m
      do lat = s%bounds(part) + 1, s%bounds(part + 1)
        do i = 1, size(owned(x)%m)
          m = owned(x)%m(i)
          if (s%mirror == x) then
            call separate(s%pairs, 1d0 / longitudes, s%z(:, :, place(m), lat), &
              s%z(:, :, place(longitudes - m), lat), f(:, :, lat, i))
          else
            call separate(s%pairs, 1d0 / longitudes, s%z(:, :, place(m), lat), &
              in(:, :, i, lat - s%bounds(part)), f(:, :, lat, i))
          end if
        end do
      end do
    end subroutine
  end subroutine

  ! From wave numbers to the grid: the same steps backwards, with conjugate factors.
  subroutine distributed_to_grid(s, f, g)
    type(distributed_type), intent(inout) :: s
    real(dp), intent(in) :: f(2, 2 * s%pairs, lats, size(owned(x)%m))
    real(dp), intent(out) :: g(2, s%pairs, lons, lats)
    integer :: stage, part, lat
    call post_ahead(s)
    s%z = 0
    do part = 1, s%parts
      call give(part, s%mirrors(part)%out)
      if (s%mirror /= x) call begin(s%mirrors(part))
    end do
    do part = 1, s%parts
      if (s%mirror /= x) then
        call complete(s%mirrors(part))
        call take(part, s%mirrors(part)%in)
      end if
      do lat = s%bounds(part) + 1, s%bounds(part + 1)
        call fft_run(s%plan, 1, s%pairs, s%z(:, :, :, lat), s%work)
      end do
      if (s%stages > 0) call turn_and_begin(part, s%stages)
    end do
    do stage = s%stages, 1, -1
      do part = 1, s%parts
        call complete(s%swaps(part, stage))
        call unfold(part, stage)
        if (stage > 1) call turn_and_begin(part, stage - 1)
      end do
    end do
    g = s%z

  contains

    ! Z(m) stays, Z(N - m) is the mirror's.
    subroutine give(part, out)
      integer, intent(in) :: part
      real(dp), intent(inout) :: out(2, s%pairs, size(owned(x)%m), *)
      real(dp) :: mirrored(2, s%pairs)
      integer :: lat, i, m
      do lat = s%bounds(part) + 1, s%bounds(part + 1)
        do i = 1, size(owned(x)%m)
          m = owned(x)%m(i)
          call unite(s%pairs, f(:, :, lat, i), s%z(:, :, place(m), lat), mirrored)
          if (s%mirror /= x) then
            out(:, :, i, lat - s%bounds(part)) = mirrored
          else if (m > 0) then
            s%z(:, :, place(longitudes - m), lat) = mirrored
          end if
        end do
      end do
    end subroutine

    subroutine take(part, in)
      integer, intent(in) :: part
      real(dp), intent(in) :: in(2, s%pairs, size(owned(s%mirror)%m), *)
      integer :: lat, i
      do lat = s%bounds(part) + 1, s%bounds(part + 1)
        do i = 1, size(owned(s%mirror)%m)
          s%z(:, :, place(longitudes - owned(s%mirror)%m(i)), lat) = &
            in(:, :, i, lat - s%bounds(part))
        end do
      end do
    end subroutine

    ! The upper half's points are turned before they are swapped.
    subroutine turn_and_begin(part, stage)
      integer, intent(in) :: part, stage
      real(dp) :: re, w(2)
      integer :: lat, j, k
      if (x > s%swaps(part, stage)%to) then
        do lat = s%bounds(part) + 1, s%bounds(part + 1)
          do j = 1, lons
            w = s%twiddles(:, j, stage)
            do k = 1, s%pairs
              re = s%z(1, k, j, lat)
              s%z(1, k, j, lat) = re * w(1) + s%z(2, k, j, lat) * w(2)
              s%z(2, k, j, lat) = s%z(2, k, j, lat) * w(1) - re * w(2)
            end do
          end do
        end do
      end if
      call begin(s%swaps(part, stage))
    end subroutine

    subroutine unfold(part, stage)
      integer, intent(in) :: part, stage
      integer :: lat, sign
      sign = merge(1, -1, x < s%swaps(part, stage)%to)
      do lat = s%bounds(part) + 1, s%bounds(part + 1)
        call unfold_circle(sign, s%z(:, :, :, lat), &
          s%theirs(2 * s%pairs * lons * (lat - 1) + 1:, stage))
      end do
    end subroutine

    subroutine unfold_circle(sign, z, other)
      integer, intent(in) :: sign
      real(dp), intent(inout) :: z(2, s%pairs, lons)
      real(dp), intent(in) :: other(2, s%pairs, lons)
      z = other + sign * z
    end subroutine
  end subroutine

  ! Where the coefficient k, which this rank has, lies on its circle.
  pure integer function place(k)
    integer, intent(in) :: k
    place = mod(k, longitudes) / nx + 1
  end function

  subroutine post_ahead(s)
    type(distributed_type), intent(inout) :: s
    integer :: stage, part
    if (.not. ahead) return
    do part = 1, s%parts
      do stage = 1, s%stages
        call post(s%swaps(part, stage))
      end do
      if (s%mirror /= x) call post(s%mirrors(part))
    end do
  end subroutine

  subroutine begin(e)
    type(exchange_type), intent(inout) :: e
    call start_clock()
    if (.not. ahead) call post(e)
    call start(e)
    call stop_clock(in_fourier)
  end subroutine

  subroutine complete(e)
    type(exchange_type), intent(inout) :: e
    call start_clock()
    call finish(e)
    call stop_clock(in_fourier)
  end subroutine
end module
