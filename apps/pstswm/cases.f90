! cases.f90: what the simulation begins with: cases 2 and 6 of the standard test set (Williamson et
! al. 1992, sections 3.2 and 3.6).
module cases
  use sphere, only: dp, pi, radius, rotation, gravity, day
  use options, only: case_number, angle
  implicit none
  private
  public :: coriolis, flow, case_name

contains

  pure function case_name()
    character(len=:), allocatable :: case_name
    case_name = 'the Rossby-Haurwitz wave'
    if (case_number == 2) case_name = 'steady solid-body rotation'
  end function

  ! The Coriolis parameter. In case 2 the sphere's axis may be turned against that of the grid, so
  ! that the flow goes over the grid's poles.
  pure real(dp) function coriolis(lambda, mu)
    real(dp), intent(in) :: lambda, mu
    coriolis = 2 * rotation * mu
    if (case_number == 2) coriolis = 2 * rotation * along_axis(lambda, mu)
  end function

  ! The sine of the latitude with respect to the turned axis.
  pure real(dp) function along_axis(lambda, mu)
    real(dp), intent(in) :: lambda, mu
    real(dp) :: alpha
    alpha = angle * pi / 180
    along_axis = mu * cos(alpha) - cos(lambda) * sqrt(1 - mu**2) * sin(alpha)
  end function

  ! The wind to the east and to the north (m/s) and the geopotential (m^2/s^2) at the beginning.
  pure subroutine flow(lambda, mu, u, v, geopotential)
    real(dp), intent(in) :: lambda, mu
    real(dp), intent(out) :: u, v, geopotential
    if (case_number == 2) then
      call solid_body(lambda, mu, u, v, geopotential)
    else
      call rossby_haurwitz(lambda, mu, u, v, geopotential)
    end if
  end subroutine

  ! Once round the sphere in 12 days, in balance with the pressure: nothing ever changes.
  pure subroutine solid_body(lambda, mu, u, v, geopotential)
    real(dp), intent(in) :: lambda, mu
    real(dp), intent(out) :: u, v, geopotential
    real(dp), parameter :: speed = 2 * pi * radius / (12 * day), highest = 2.94e4_dp
    real(dp) :: alpha
    alpha = angle * pi / 180
    u = speed * (sqrt(1 - mu**2) * cos(alpha) + cos(lambda) * mu * sin(alpha))
    v = -speed * sin(lambda) * sin(alpha)
    geopotential = highest - (radius * rotation * speed + speed**2 / 2) * along_axis(lambda, mu)**2
  end subroutine

  ! A wave with four crests round the sphere, which moves to the east almost without a change.
  pure subroutine rossby_haurwitz(lambda, mu, u, v, geopotential)
    real(dp), intent(in) :: lambda, mu
    real(dp), intent(out) :: u, v, geopotential
    integer, parameter :: r = 4
    real(dp), parameter :: w = 7.848e-6_dp, k = w, height = 8e3_dp
    real(dp) :: c, c2, a0, a1, a2
    c2 = 1 - mu**2             ! cos(latitude)^2
    c = sqrt(c2)
    u = radius * w * c + radius * k * c**(r - 1) * (r * mu**2 - c2) * cos(r * lambda)
    v = -radius * k * r * c**(r - 1) * mu * sin(r * lambda)
    a0 = w / 2 * (2 * rotation + w) * c2 + k**2 / 4 * c2**(r - 1) * &
      ((r + 1) * c2**2 + (2 * r**2 - r - 2) * c2 - 2 * r**2)
    a1 = 2 * (rotation + w) * k / ((r + 1) * (r + 2)) * c**r * &
      (r**2 + 2 * r + 2 - (r + 1)**2 * c2)
    a2 = k**2 / 4 * c2**r * ((r + 1) * c2 - (r + 2))
    geopotential = gravity * height &
      + radius**2 * (a0 + a1 * cos(r * lambda) + a2 * cos(2 * r * lambda))
  end subroutine
end module
