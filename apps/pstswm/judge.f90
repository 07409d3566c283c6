! judge.f90: whether the results are right, from what is known of the flow.
!
! Case 2 is steady: the height must be what it was. The relative errors are those of the test set
! (Williamson et al. 1992, section 4), over all levels. Case 6 has no exact solution, but the
! equations conserve mass, energy and potential enstrophy:
!   the integrals of   h,   h (u^2 + v^2) / 2 + g h^2 / 2,   (zeta + f)^2 / (2 h).
!
! An error that is not a number is never within its limit.
module judge
  use mpi_f08
  use sphere, only: dp, gravity
  use options, only: case_number, levels
  use mesh, only: world, rank, lons, lats
  use cases, only: flow
  use legendre, only: zeta_, phi_, u_, v_, fields
  use dynamics
  implicit none
  private
  real(dp) :: at_start(3)
  real(dp), parameter, public :: height_limit = 1e-9_dp
  real(dp), parameter, public :: conserved_limits(3) = [1e-11_dp, 1e-4_dp, 1e-3_dp]

  public :: remember, judge_results

contains

  ! Keeps what is to be conserved.
  subroutine remember()
    at_start = invariants()
  end subroutine

  ! True if the results are right; the first rank says how right they are.
  logical function judge_results()
    real(dp) :: errors(3), ends(3)
    if (case_number == 2) then
      errors = height_errors()
      judge_results = all(errors <= height_limit)
      if (rank == 0) print '(a, 3(a, es8.1), a, es7.1, a)', 'height     relative error', &
        ' l1', errors(1), ', l2', errors(2), ', maximum', errors(3), ' (limit ', height_limit, ')'
    else
      ends = invariants()
      errors = (ends - at_start) / abs(at_start)
      judge_results = all(abs(errors) <= conserved_limits)
      if (rank == 0) then
        call tell('mass      ', 'm         ', 1)
        call tell('energy    ', 'm^3/s^2   ', 2)
        call tell('enstrophy ', '1/(m s^2) ', 3)
      end if
    end if
    if (rank == 0) print '(a)', trim(merge('verified    ', 'NOT VERIFIED', judge_results))

  contains

    subroutine tell(name, unit, i)
      character(len=*), intent(in) :: name, unit
      integer, intent(in) :: i
      print '(a, es23.15, 1x, a, a, es9.1, a, es7.1, a)', name, ends(i), unit, &
        'change', errors(i), ' (limit ', conserved_limits(i), ')'
    end subroutine
  end function

  ! Relative errors of the height against the flow at the start: l1, l2, maximum.
  function height_errors()
    real(dp) :: height_errors(3)
    real(dp) :: sums(4), largest(2), u, v, exact, error
    real(dp), pointer, contiguous :: g(:, :, :)
    integer :: lon, lat, l
    call look(g)
    sums = 0
    largest = 0
    do lat = 1, lats
      do lon = 1, lons
        call flow(longitude(lon), latitude(lat), u, v, exact)
        do l = 1, levels
          error = abs(mean_geopotential + g((phi_ - 1) * levels + l, lon, lat) - exact)
          if (error /= error) error = huge(error)
          sums = sums + area(lat) * [error, exact, error**2, exact**2]
          largest = max(largest, [error, exact])
        end do
      end do
    end do
    call MPI_Allreduce(MPI_IN_PLACE, sums, 4, MPI_DOUBLE_PRECISION, MPI_SUM, world)
    call MPI_Allreduce(MPI_IN_PLACE, largest, 2, MPI_DOUBLE_PRECISION, MPI_MAX, world)
    height_errors = [sums(1) / sums(2), sqrt(sums(3) / sums(4)), largest(1) / largest(2)]
  end function

  ! The means over the sphere and the levels of mass, energy and potential enstrophy.
  function invariants()
    real(dp) :: invariants(3)
    real(dp), pointer, contiguous :: g(:, :, :)
    integer :: lon, lat
    call look(g)
    invariants = 0
    do lat = 1, lats
      do lon = 1, lons
        invariants = invariants + area(lat) * at_point(g(:, lon, lat), f(lon, lat), latitude(lat))
      end do
    end do
    call MPI_Allreduce(MPI_IN_PLACE, invariants, 3, MPI_DOUBLE_PRECISION, MPI_SUM, world)
  end function

  pure function at_point(g, f, mu)
    real(dp), intent(in) :: g(levels, fields), f, mu
    real(dp) :: at_point(3)
    real(dp), dimension(levels) :: height, wind
    height = (mean_geopotential + g(:, phi_)) / gravity
    wind = (g(:, u_)**2 + g(:, v_)**2) / (1 - mu**2)
    at_point = [sum(height), sum(height * wind + gravity * height**2) / 2, &
      sum((g(:, zeta_) + f)**2 / (2 * height))] / levels
  end function
end module
