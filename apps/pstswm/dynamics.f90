! dynamics.f90: the shallow water equations, step by step.
!
! With the absolute vorticity eta = zeta + f, the divergence delta, the geopotential Phi = mean +
! Phi' and E = (u^2 + v^2) / 2 they are
!   d eta / dt   = - div (eta (u, v))
!   d delta / dt =   k . curl (eta (u, v)) - laplacian (Phi' + E)
!   d Phi' / dt  = - div (Phi' (u, v)) - mean delta
! The terms that make gravity waves, laplacian Phi' and mean delta, are linear. They are taken as
! the average of the step before and the step after (semi-implicit), so that the time step is not
! bound by gravity waves; all others are taken now (leapfrog). A spherical harmonic is an
! eigenfunction of the Laplacian, with the eigenvalue -L = -n (n + 1) / radius^2, so each
! coefficient has its own two equations with two unknowns.
module dynamics
  use mpi_f08
  use sphere, only: dp, pi, radius
  use options, only: levels, longitudes, time_step, asselin, diffusion
  use mesh, only: world, first_lon, lons, lats
  use cases, only: coriolis, flow
  use legendre, only: mu, weight, laplacian, vorticity, divergence, geopotential, variables, &
    zeta_, phi_, u_, v_, fields, a_, b_, c_, d_, e_, products
  use fourier, only: batch
  use transform
  implicit none
  private

  ! The coefficients (:, level, variable, coefficient) now and one step before.
  real(dp), allocatable, target, protected, public :: now(:, :, :, :)
  real(dp), allocatable :: before(:, :, :, :)       ! only of those that this rank steps forward
  real(dp), protected, public :: mean_geopotential
  real(dp), allocatable, protected, public :: f(:, :)   ! Coriolis parameter (longitude, latitude)
  real(dp), pointer, contiguous :: fields_g(:, :, :), products_g(:, :, :)   ! of `batch` latitudes
  real(dp), pointer, contiguous :: whole_g(:, :, :)                         ! of all, to look at

  public :: make_dynamics, advance, look, latitude, longitude, area

contains

  ! sin(latitude) of the rank's latitude number `lat`.
  pure real(dp) function latitude(lat)
    integer, intent(in) :: lat
    latitude = merge(1, -1, mod(lat, 2) == 1) * mu((lat + 1) / 2)
  end function

  pure real(dp) function longitude(lon)
    integer, intent(in) :: lon
    longitude = 2 * pi * (first_lon + lon - 2) / longitudes
  end function

  ! The share that a point on this latitude has of the whole sphere.
  pure real(dp) function area(lat)
    integer, intent(in) :: lat
    area = weight((lat + 1) / 2) / (2 * longitudes)
  end function

  ! The state at the beginning.
  subroutine make_dynamics()
    integer :: lon, lat
    real(dp) :: u, v, phi, sum
    allocate (now(2, levels, variables, first_mine:last_place), source=0d0)
    call make_sums(now)
    allocate (before(2, levels, variables, first_stepped:last_stepped))
    allocate (fields_g(levels * fields, lons, batch()))
    allocate (products_g(levels * products, lons, batch()))
    allocate (whole_g(levels * fields, lons, lats))
    allocate (f(lons, lats))
    sum = 0
    do lat = 1, lats
      do lon = 1, lons
        f(lon, lat) = coriolis(longitude(lon), latitude(lat))
        call flow(longitude(lon), latitude(lat), u, v, phi)
        sum = sum + area(lat) * phi
      end do
    end do
    call MPI_Allreduce(sum, mean_geopotential, 1, MPI_DOUBLE_PRECISION, MPI_SUM, world)
    call analyse_flow()
    before = now(:, :, :, first_stepped:last_stepped)
  end subroutine

  ! Vorticity and divergence of the flow are div (-v, u) and div (u, v): what the transform makes
  ! of A = -V and B = U. Of the geopotential, put as E, it makes -laplacian Phi, from which Phi'
  ! follows by dividing; its mean is known.
  subroutine analyse_flow()
    real(dp), allocatable, target :: g(:, :, :)
    real(dp) :: u, v, phi, c
    integer :: lon, lat, i
    allocate (g(levels * products, lons, lats), source=0d0)
    do lat = 1, lats
      c = sqrt(1 - latitude(lat)**2)
      do lon = 1, lons
        call flow(longitude(lon), latitude(lat), u, v, phi)
        call put(g(:, lon:lon, lat:lat), -v * c, u * c, 0d0)
      end do
    end do
    call to_tendencies(g)
    now(:, :, :, first_stepped:last_stepped) = tendencies(:, :, :, first_stepped:last_stepped)
    g = 0
    do lat = 1, lats
      do lon = 1, lons
        call flow(longitude(lon), latitude(lat), u, v, phi)
        call put(g(:, lon:lon, lat:lat), 0d0, 0d0, phi)
      end do
    end do
    call to_tendencies(g)
    do i = first_stepped, last_stepped
      if (laplacian(i) > 0) then
        now(:, :, geopotential, i) = tendencies(:, :, divergence, i) / laplacian(i)
      else
        now(:, :, geopotential, i) = 0
      end if
    end do
    call share_steps()
  end subroutine

  ! A, B and E of points, the same on all levels.
  subroutine put(g, a, b, e)
    real(dp), intent(inout) :: g(:, :, :)
    real(dp), intent(in) :: a, b, e
    g((a_ - 1) * levels + 1:a_ * levels, :, :) = a
    g((b_ - 1) * levels + 1:b_ * levels, :, :) = b
    g((e_ - 1) * levels + 1:e_ * levels, :, :) = e
  end subroutine

  ! zeta, Phi', U and V on the grid now: g(level and field, longitude, latitude).
  subroutine look(g)
    real(dp), pointer, contiguous, intent(out) :: g(:, :, :)
    call to_fields(now, whole_g)
    g => whole_g
  end subroutine

  ! One time step. The first one has no step before: it goes from now, and over half the distance
  ! of a leap.
  subroutine advance(first)
    logical, intent(in) :: first
    call whole_step(now, multiply_fields, fields_g, products_g)
    call step_coefficients(merge(time_step / 2, time_step, first), merge(0d0, asselin, first))
    call share_steps()
  end subroutine

  ! The products of the fields on the latitudes from `first` on.
  subroutine multiply_fields(first, g, p)
    integer, intent(in) :: first
    real(dp), contiguous, intent(in) :: g(:, :, :)
    real(dp), contiguous, intent(inout) :: p(:, :, :)
    real(dp) :: half
    integer :: lon, lat
    do lat = 1, size(g, 3)
      half = 0.5_dp / (1 - latitude(first + lat - 1)**2)
      do lon = 1, lons
        call multiply_point(g(:, lon, lat), f(lon, first + lat - 1), half, p(:, lon, lat))
      end do
    end do
  end subroutine

  pure subroutine multiply_point(g, f, half, p)
    real(dp), intent(in) :: g(levels, fields), f, half
    real(dp), intent(inout) :: p(levels, products)
    integer :: l
    do l = 1, levels
      p(l, a_) = g(l, u_) * (g(l, zeta_) + f)
      p(l, b_) = g(l, v_) * (g(l, zeta_) + f)
      p(l, c_) = g(l, u_) * g(l, phi_)
      p(l, d_) = g(l, v_) * g(l, phi_)
      p(l, e_) = half * (g(l, u_)**2 + g(l, v_)**2)
    end do
  end subroutine

  ! From the tendencies to the next step, over 2 dt from the step before:
  !   delta+ = delta- + 2 dt N_delta + dt L (Phi+ + Phi-)
  !   Phi+   = Phi-   + 2 dt N_Phi   - dt mean (delta+ + delta-)
  ! The time filter (Asselin) then damps the difference between even and odd steps.
  subroutine step_coefficients(dt, filter)
    real(dp), intent(in) :: dt, filter
    real(dp) :: next(2, levels, variables), x(2, levels), y(2, levels), l
    integer :: i
    do i = first_stepped, last_stepped
      l = laplacian(i)
      next(:, :, vorticity) = before(:, :, vorticity, i) + 2 * dt * tendencies(:, :, vorticity, i)
      y = before(:, :, divergence, i) + 2 * dt * tendencies(:, :, divergence, i) &
        + dt * l * before(:, :, geopotential, i)
      x = before(:, :, geopotential, i) + 2 * dt * tendencies(:, :, geopotential, i) &
        - dt * mean_geopotential * before(:, :, divergence, i)
      next(:, :, divergence) = (y + dt * l * x) / (1 + dt**2 * l * mean_geopotential)
      next(:, :, geopotential) = x - dt * mean_geopotential * next(:, :, divergence)
      if (diffusion > 0) call diffuse(next, l, dt)
      before(:, :, :, i) = now(:, :, :, i) &
        + filter * (before(:, :, :, i) - 2 * now(:, :, :, i) + next)
      now(:, :, :, i) = next
    end do
  end subroutine

  ! Diffusion of the fourth order, implicit. It leaves solid-body rotation (n = 1) alone.
  pure subroutine diffuse(next, l, dt)
    real(dp), intent(inout) :: next(2, levels, variables)
    real(dp), intent(in) :: l, dt
    real(dp) :: rate
    rate = diffusion * max(0d0, l**2 - 4 / radius**4)
    next(:, :, divergence:vorticity) = next(:, :, divergence:vorticity) / (1 + 2 * dt * rate)
    next(:, :, geopotential) = next(:, :, geopotential) / (1 + 2 * dt * diffusion * l**2)
  end subroutine
end module
