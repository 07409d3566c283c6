! transposed.f90: the Fourier transform in longitude by transposition, the T of TN.
!
! A rank has all values (fields x levels) on its part of each circle of latitude. To transform a
! circle it must have all of it: the ranks of a row transpose, so that each has some of the values
! on whole circles. After the transform they transpose back, and each has all values again, of its
! own wave numbers (the "double transpose" of the paper, section 2).
!
!   g(value, longitude, latitude)   the rank's part of the grid
!   t(:, pair, longitude, latitude) its pairs of values on whole circles
!   f(:, value, latitude, m)        its wave numbers
!
! With one rank in the row nothing is moved: the circles are transformed where they are, and one
! latitude may be done after the other.
module transposed
  use sphere, only: dp
  use fft
  use options, only: truncation, longitudes
  use mesh, only: nx, x, lons, row, cut, owned
  use packing
  use transposition
  implicit none
  private

  ! Between the grid and whole circles.
  type, extends(transposition_type) :: points_type
    integer :: values = 0, latitudes = 0
    logical :: to_circles = .true.
    real(dp), pointer, contiguous :: g(:, :, :) => null()
    real(dp), pointer, contiguous :: t(:, :, :, :) => null()
  contains
    procedure :: pack => pack_points
    procedure :: unpack => unpack_points
  end type

  ! Between whole circles of coefficients and the rank's wave numbers.
  type, extends(transposition_type) :: waves_type
    integer :: values = 0, latitudes = 0, before = 0     ! of those that are transposed at once
    logical :: from_circles = .true.
    real(dp), pointer, contiguous :: t(:, :, :, :) => null()
    real(dp), pointer, contiguous :: f(:, :, :, :) => null()
  contains
    procedure :: pack => pack_waves
    procedure :: unpack => unpack_waves
  end type

  type, public :: transposed_type
    integer :: values = 0
    type(fft_plan) :: plan
    type(points_type) :: points
    type(waves_type) :: waves
    real(dp), pointer, contiguous :: t(:, :, :, :) => null()
    real(dp), allocatable :: work(:)
  end type
  public :: make_transposed, transposed_to_waves, transposed_to_grid

contains

  ! Prepares for `values` values at each point, an even number, from the grid to wave numbers
  ! (`to_waves`) or the other way, of `at_once` latitudes at a time.
  subroutine make_transposed(values, to_waves, at_once, s)
    integer, intent(in) :: values, at_once
    logical, intent(in) :: to_waves
    type(transposed_type), intent(out) :: s
    integer, dimension(0:nx - 1) :: out_points, in_points, out_waves, in_waves
    integer :: i, first, length, mine
    logical :: possible
    call fft_make(longitudes, s%plan, possible)
    s%values = values
    mine = values_of(values, x)
    allocate (s%work(mine * longitudes))
    if (nx == 1) return
    do i = 0, nx - 1
      call cut(longitudes, nx, i, first, length)
      out_points(i) = values_of(values, i) * lons * at_once
      in_points(i) = mine * length * at_once
      out_waves(i) = 2 * mine * size(owned(i)%m) * at_once
      in_waves(i) = 2 * values_of(values, i) * size(owned(x)%m) * at_once
    end do
    if (to_waves) then
      call s%points%prepare(row, out_points, in_points)
      call s%waves%prepare(row, out_waves, in_waves)
    else
      call s%points%prepare(row, in_points, out_points)
      call s%waves%prepare(row, in_waves, out_waves)
    end if
    allocate (s%t(2, mine / 2, longitudes, at_once))
    s%points%values = values
    s%points%latitudes = at_once
    s%points%to_circles = to_waves
    s%points%t => s%t
    s%waves%values = values
    s%waves%latitudes = at_once
    s%waves%from_circles = to_waves
    s%waves%t => s%t
  end subroutine

  ! How many of the values the rank number i of a row has on whole circles, in pairs, and which is
  ! the first.
  pure integer function values_of(values, i)
    integer, intent(in) :: values, i
    integer :: first
    call cut(values / 2, nx, i, first, values_of)
    values_of = 2 * values_of
  end function

  pure integer function first_value_of(values, i)
    integer, intent(in) :: values, i
    integer :: length
    call cut(values / 2, nx, i, first_value_of, length)
    first_value_of = 2 * first_value_of - 1
  end function

  ! From the grid, which is overwritten, to wave numbers: of the latitudes from `first` on.
  subroutine transposed_to_waves(s, first, g, f)
    integer, intent(in) :: first
    type(transposed_type), intent(inout) :: s
    real(dp), target, contiguous, intent(inout) :: g(:, :, :)
    real(dp), target, contiguous, intent(inout) :: f(:, :, :, :)
    integer :: lat
    if (nx == 1) then
      do lat = 1, size(g, 3)
        call fft_run(s%plan, -1, s%values / 2, g(:, :, lat), s%work)
        call separate_circle(g(:, :, lat), first + lat - 1)
      end do
      return
    end if
    s%points%g => g
    s%waves%f => f
    s%waves%before = first - 1
    call s%points%run()
    do lat = 1, size(g, 3)
      call fft_run(s%plan, -1, size(s%t, 2), s%t(:, :, :, lat), s%work)
    end do
    call s%waves%run()

  contains

    subroutine separate_circle(z, lat)
      real(dp), intent(in) :: z(2, s%values / 2, 0:longitudes - 1)
      integer, intent(in) :: lat
      integer :: m
      do m = 0, truncation
        call separate(s%values / 2, 1d0 / longitudes, z(:, :, m), &
          z(:, :, mod(longitudes - m, longitudes)), f(:, :, lat, m + 1))
      end do
    end subroutine
  end subroutine

  ! From wave numbers to the grid.
  subroutine transposed_to_grid(s, first, f, g)
    integer, intent(in) :: first
    type(transposed_type), intent(inout) :: s
    real(dp), target, contiguous, intent(inout) :: f(:, :, :, :)
    real(dp), target, contiguous, intent(inout) :: g(:, :, :)
    integer :: lat
    if (nx == 1) then
      do lat = 1, size(g, 3)
        call unite_circle(first + lat - 1, g(:, :, lat))
        call fft_run(s%plan, 1, s%values / 2, g(:, :, lat), s%work)
      end do
      return
    end if
    s%points%g => g
    s%waves%f => f
    s%waves%before = first - 1
    s%t(:, :, truncation + 2:longitudes - truncation, :) = 0
    call s%waves%run()
    do lat = 1, size(g, 3)
      call fft_run(s%plan, 1, size(s%t, 2), s%t(:, :, :, lat), s%work)
    end do
    call s%points%run()

  contains

    subroutine unite_circle(lat, z)
      integer, intent(in) :: lat
      real(dp), intent(inout) :: z(2, s%values / 2, 0:longitudes - 1)
      integer :: m
      z(:, :, truncation + 1:longitudes - truncation - 1) = 0
      do m = truncation, 1, -1
        call unite(s%values / 2, f(:, :, lat, m + 1), z(:, :, m), z(:, :, longitudes - m))
      end do
      call unite(s%values / 2, f(:, :, lat, 1), z(:, :, 0), s%work)
    end subroutine
  end subroutine

  subroutine pack_points(t, other)
    class(points_type), intent(inout) :: t
    integer, intent(in) :: other
    if (t%to_circles) then
      call copy_points(t, other, t%outgoing(other), to_buffer=.true.)
    else
      call copy_arcs(t, other, t%outgoing(other), to_buffer=.true.)
    end if
  end subroutine

  subroutine unpack_points(t, other)
    class(points_type), intent(inout) :: t
    integer, intent(in) :: other
    if (t%to_circles) then
      call copy_arcs(t, other, t%incoming(other), to_buffer=.false.)
    else
      call copy_points(t, other, t%incoming(other), to_buffer=.false.)
    end if
  end subroutine

  ! The values of another rank on this rank's points, between the grid and the buffer.
  subroutine copy_points(t, other, buffer, to_buffer)
    class(points_type), intent(inout) :: t
    integer, intent(in) :: other
    real(dp), pointer, contiguous, intent(in) :: buffer(:)
    logical, intent(in) :: to_buffer
    integer :: first, count, place, lon, lat
    first = first_value_of(t%values, other)
    count = values_of(t%values, other)
    place = 1
    do lat = 1, t%latitudes
      do lon = 1, lons
        if (to_buffer) then
          buffer(place:place + count - 1) = t%g(first:first + count - 1, lon, lat)
        else
          t%g(first:first + count - 1, lon, lat) = buffer(place:place + count - 1)
        end if
        place = place + count
      end do
    end do
  end subroutine

  ! This rank's values on another rank's points, between the circles and the buffer.
  subroutine copy_arcs(t, other, buffer, to_buffer)
    class(points_type), intent(inout) :: t
    integer, intent(in) :: other
    real(dp), pointer, contiguous, intent(in) :: buffer(:)
    logical, intent(in) :: to_buffer
    integer :: first, last, length, count, place, lat
    call cut(longitudes, nx, other, first, length)
    last = first + length - 1
    count = 2 * size(t%t, 2) * length
    do lat = 1, t%latitudes
      place = (lat - 1) * count
      if (to_buffer) then
        call move(count, t%t(:, :, first:last, lat), buffer(place + 1:place + count))
      else
        call move(count, buffer(place + 1:place + count), t%t(:, :, first:last, lat))
      end if
    end do
  end subroutine

  subroutine pack_waves(t, other)
    class(waves_type), intent(inout) :: t
    integer, intent(in) :: other
    if (t%from_circles) then
      call separate_for(t, other, t%outgoing(other))
    else
      call copy_waves(t, other, t%outgoing(other), to_buffer=.true.)
    end if
  end subroutine

  subroutine unpack_waves(t, other)
    class(waves_type), intent(inout) :: t
    integer, intent(in) :: other
    if (t%from_circles) then
      call copy_waves(t, other, t%incoming(other), to_buffer=.false.)
    else
      call unite_from(t, other, t%incoming(other))
    end if
  end subroutine

  ! Another rank's wave numbers of this rank's values: from the circles to the buffer.
  subroutine separate_for(t, other, buffer)
    class(waves_type), intent(inout) :: t
    integer, intent(in) :: other
    real(dp), intent(inout) :: buffer(2, 2, size(t%t, 2), size(owned(other)%m), t%latitudes)
    integer :: lat, i, m
    do lat = 1, t%latitudes
      do i = 1, size(owned(other)%m)
        m = owned(other)%m(i)
        call separate(size(t%t, 2), 1d0 / longitudes, t%t(:, :, m + 1, lat), &
          t%t(:, :, mod(longitudes - m, longitudes) + 1, lat), buffer(:, :, :, i, lat))
      end do
    end do
  end subroutine

  ! The same the other way.
  subroutine unite_from(t, other, buffer)
    class(waves_type), intent(inout) :: t
    integer, intent(in) :: other
    real(dp), intent(in) :: buffer(2, 2, size(t%t, 2), size(owned(other)%m), t%latitudes)
    real(dp) :: same(2, size(t%t, 2))
    integer :: lat, i, m
    do lat = 1, t%latitudes
      do i = 1, size(owned(other)%m)
        m = owned(other)%m(i)
        if (m == 0) then
          call unite(size(t%t, 2), buffer(:, :, :, i, lat), t%t(:, :, 1, lat), same)
        else
          call unite(size(t%t, 2), buffer(:, :, :, i, lat), t%t(:, :, m + 1, lat), &
            t%t(:, :, longitudes - m + 1, lat))
        end if
      end do
    end do
  end subroutine

  ! Another rank's values of this rank's wave numbers, between f and the buffer.
  subroutine copy_waves(t, other, buffer, to_buffer)
    class(waves_type), intent(inout) :: t
    integer, intent(in) :: other
    real(dp), pointer, contiguous, intent(in) :: buffer(:)
    logical, intent(in) :: to_buffer
    integer :: first, last, count, place, lat, m
    first = first_value_of(t%values, other)
    last = first + values_of(t%values, other) - 1
    count = 2 * (last - first + 1)
    place = 0
    do lat = t%before + 1, t%before + t%latitudes
      do m = 1, size(owned(x)%m)
        if (to_buffer) then
          call move(count, t%f(:, first:last, lat, m), buffer(place + 1:place + count))
        else
          call move(count, buffer(place + 1:place + count), t%f(:, first:last, lat, m))
        end if
        place = place + count
      end do
    end do
  end subroutine

  ! `count` numbers that lie side by side.
  pure subroutine move(count, from, to)
    integer, intent(in) :: count
    real(dp), intent(in) :: from(count)
    real(dp), intent(out) :: to(count)
    to = from
  end subroutine
end module
