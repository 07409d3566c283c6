! fourier.f90: the Fourier transform in longitude, by transposition or distributed.
module fourier
  use sphere, only: dp
  use options, only: algorithm, at_once
  use mesh, only: nx, lats
  use distributed
  use transposed
  implicit none
  private

  type, public :: fourier_type
    type(transposed_type) :: t
    type(distributed_type) :: d
  end type
  public :: make_fourier, batch, to_waves, to_grid

contains

  ! Prepares for `values` values at each point, an even number, in one direction.
  subroutine make_fourier(values, to_waves, s)
    integer, intent(in) :: values
    logical, intent(in) :: to_waves
    type(fourier_type), intent(inout) :: s
    if (algorithm(1:1) == 'T') then
      call make_transposed(values, to_waves, batch(), s%t)
    else
      call make_distributed(values, to_waves, s%d)
    end if
  end subroutine

  ! How many latitudes are transformed at once. Few of them stay in the cache from one transform
  ! through the products to the other: a pair where no rank needs another's points; else as the user
  ! wishes (a divisor of all, not above it).
  pure integer function batch()
    batch = lats
    if (algorithm(1:1) == 'D') return
    if (at_once > 0) batch = min(lats, max(2, at_once))
    if (nx == 1) batch = 2
    do while (mod(lats, batch) /= 0)
      batch = batch - 1
    end do
  end function

  ! From the grid g(value, longitude, latitude), which may be overwritten, to the rank's wave
  ! numbers f(:, value, latitude, m): the `batch` latitudes from `first` on.
  subroutine to_waves(s, first, g, f)
    type(fourier_type), intent(inout) :: s
    integer, intent(in) :: first
    real(dp), contiguous, target, intent(inout) :: g(:, :, :), f(:, :, :, :)
    if (algorithm(1:1) == 'T') then
      call transposed_to_waves(s%t, first, g, f)
    else
      call distributed_to_waves(s%d, g, f)
    end if
  end subroutine

  ! The way back.
  subroutine to_grid(s, first, f, g)
    type(fourier_type), intent(inout) :: s
    integer, intent(in) :: first
    real(dp), contiguous, target, intent(inout) :: f(:, :, :, :), g(:, :, :)
    if (algorithm(1:1) == 'T') then
      call transposed_to_grid(s%t, first, f, g)
    else
      call distributed_to_grid(s%d, f, g)
    end if
  end subroutine
end module
