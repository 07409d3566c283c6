! output.f90: what the program says and the files that it writes.
module output
  use mpi_f08
  use sphere, only: dp, gravity
  use clock, only: spent
  use options
  use mesh, only: world, rank, ranks, nx, ny, y, first_lon, lons, first_pair, lats
  use cases, only: case_name
  use legendre, only: phi_, variables, m_of, n_of
  use transform, only: first_mine, last_mine
  use dynamics, only: now, look, mean_geopotential
  implicit none
  private
  public :: tell_configuration, tell_times, write_files

contains

  subroutine tell_configuration()
    if (rank /= 0) return
    print '("pstswm     case ", i0, ": ", a, ", T", i0, ", ", i0, " x ", i0, " points, ", i0, &
      &" levels, ", i0, " steps of ", f0.1, " s")', &
      case_number, case_name(), truncation, longitudes, latitudes, levels, steps, time_step
    print '("ranks      ", i0, " as ", i0, " x ", i0, " (longitude x latitude), order ", a)', &
      ranks, nx, ny, trim(order)
    print '("algorithm  ", a, 2a)', trim(algorithm), fourier_way(), legendre_way()
    if (by_hand()) print '("protocol   ", 3a)', trim(protocol), &
      trim(merge(', receive-ahead', '               ', ahead)), &
      trim(merge(', overlap', '         ', overlap))
  end subroutine

  function fourier_way() result(text)
    character(len=:), allocatable :: text
    text = ': distributed FFT'
    if (algorithm(1:1) == 'T') text = ': transpose by ' // trim(transpose_by)
    if (algorithm(1:1) == 'T' .and. at_once > 0) text = text // ' in batches'
    if (algorithm(1:1) == 'T' .and. transpose_by == 'hand') text = text // ', pattern ' // pattern
    text = trim(text)
  end function

  function legendre_way() result(text)
    character(len=:), allocatable :: text
    text = ', pipelined Legendre transform'
    if (algorithm(2:2) == 'N') then
      text = ', sum by ' // trim(sum_by)
      if (update == 'own') text = text // ', update by one'
    end if
  end function

  logical function by_hand()
    by_hand = algorithm /= 'TN' .or. transpose_by == 'hand' &
      .or. any(sum_by == ['halving', 'ring   '])
  end function

  ! What `counted` steps took on this rank, in seconds: the slowest rank's count.
  subroutine tell_times(seconds, counted)
    real(dp), intent(in) :: seconds
    integer, intent(in) :: counted
    real(dp) :: slowest, communication(2)
    call MPI_Allreduce(seconds, slowest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, world)
    call MPI_Allreduce(spent / seconds, communication, 2, MPI_DOUBLE_PRECISION, MPI_SUM, world)
    if (rank /= 0) return
    print '("seconds    ", f12.6)', slowest
    print '("per step   ", f12.6)', slowest / counted
    print '("Mop/s      ", f12.2)', operations() * counted / slowest / 1e6_dp
    print '("messages   ", f0.1, " % of the time (Fourier ", f0.1, " %, Legendre ", f0.1, &
      &" %), mean of the ranks")', &
      100 * sum(communication) / ranks, 100 * communication / ranks
  end subroutine

  ! Floating-point operations of one step, by the usual counts: 5/2 N log2 N for a real transform of
  ! length N, of 4 fields outward and 5 products inward; 13 multiplications and additions for each
  ! real and imaginary part of a coefficient, northern latitude and level.
  pure real(dp) function operations()
    real(dp) :: circle, pairs
    circle = 2.5_dp * longitudes * log(real(longitudes, dp)) / log(2d0)
    pairs = (truncation + 1) * (truncation + 2) / 2d0 * (latitudes / 2)
    operations = levels * (9 * latitudes * circle + 4 * 13 * pairs)
  end function

  ! Writes the files that the options name. `problem` is a sentence if that was not possible.
  subroutine write_files(problem)
    character(len=:), allocatable, intent(out) :: problem
    problem = ''
    if (state_file /= '') call write_state(problem)
    if (field_file /= '') call write_field(problem)
  end subroutine

  ! The coefficients: the integers truncation and levels, then (re and im, level, variable,
  ! coefficient) in double precision, ordered by m, then n. The
  ! variables are divergence, vorticity, Phi'.
  subroutine write_state(problem)
    character(len=:), allocatable, intent(inout) :: problem
    real(dp), allocatable :: whole(:)
    integer :: i, place, size_of_one
    size_of_one = 2 * levels * variables
    allocate (whole(size_of_one * (truncation + 1) * (truncation + 2) / 2), source=0d0)
    if (algorithm(2:2) == 'P' .or. y == 0) then     ! else the ranks of a column have the same
      do i = first_mine, last_mine
        place = m_of(i) * (2 * truncation + 3 - m_of(i)) / 2 + n_of(i) - m_of(i)
        whole(place * size_of_one + 1:(place + 1) * size_of_one) = &
          reshape(now(:, :, :, i), [size_of_one])
      end do
    end if
    call sum_and_write(whole, [truncation, levels], state_file, problem)
  end subroutine

  ! The height of the first level: the numbers of longitudes and latitudes, then the metres
  ! (longitude, latitude from the north) in double precision.
  subroutine write_field(problem)
    character(len=:), allocatable, intent(inout) :: problem
    real(dp), allocatable :: whole(:)
    real(dp), pointer, contiguous :: g(:, :, :)
    integer :: lat, pair, row
    call look(g)
    allocate (whole(longitudes * latitudes), source=0d0)
    do lat = 1, lats
      pair = first_pair + (lat - 1) / 2
      row = merge(pair, latitudes + 1 - pair, mod(lat, 2) == 1)
      whole((row - 1) * longitudes + first_lon:(row - 1) * longitudes + first_lon + lons - 1) = &
        (mean_geopotential + g((phi_ - 1) * levels + 1, :, lat)) / gravity
    end do
    call sum_and_write(whole, [longitudes, latitudes], field_file, problem)
  end subroutine

  ! Every number comes from one rank, the others have 0: the sum puts them together exactly.
  subroutine sum_and_write(whole, head, file, problem)
    real(dp), intent(inout) :: whole(:)
    integer, intent(in) :: head(2)
    character(len=*), intent(in) :: file
    character(len=:), allocatable, intent(inout) :: problem
    character(len=200) :: message
    integer :: unit, status
    if (rank /= 0) then
      call MPI_Reduce(whole, whole, size(whole), MPI_DOUBLE_PRECISION, MPI_SUM, 0, world)
      return
    end if
    call MPI_Reduce(MPI_IN_PLACE, whole, size(whole), MPI_DOUBLE_PRECISION, MPI_SUM, 0, world)
    open (newunit=unit, file=file, access='stream', form='unformatted', status='replace', &
      iostat=status, iomsg=message)
    if (status == 0) write (unit, iostat=status, iomsg=message) head, whole
    if (status == 0) close (unit, iostat=status, iomsg=message)
    if (status /= 0) problem = 'cannot write ' // trim(file) // ': ' // trim(message)
  end subroutine
end module
