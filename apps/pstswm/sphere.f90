! sphere.f90: the sphere and what is known on it in advance: its constants, the Gauss-Legendre
! latitudes and the associated Legendre functions on them.
!
! Longitude is lambda, latitude phi, and mu = sin(phi). The constants are those of the standard
! test set (Williamson et al., J. Comput. Phys. 102, 1992, section 3).
module sphere
  implicit none
  private
  integer, parameter, public :: dp = kind(1d0)
  real(dp), parameter, public :: pi = acos(-1d0)
  real(dp), parameter, public :: radius = 6.37122e6_dp      ! m
  real(dp), parameter, public :: rotation = 7.292e-5_dp     ! 1/s
  real(dp), parameter, public :: gravity = 9.80616_dp       ! m/s^2
  real(dp), parameter, public :: day = 86400                ! s
  public :: gauss, legendre_functions

contains

  ! The nodes of the northern hemisphere, from the pole to the equator, and the weights of the
  ! Gauss-Legendre quadrature with 2 * size(mu) nodes. The southern ones are their mirror.
  !
  ! The nodes are the roots of the Legendre polynomial P_n: Newton's method from a guess that is
  ! good enough for each to find its own. The rule is exact for polynomials up to degree 2n - 1.
  subroutine gauss(mu, weight)
    real(dp), intent(out) :: mu(:), weight(:)
    real(dp) :: x, change, value, slope
    integer :: n, j
    n = 2 * size(mu)
    do j = 1, size(mu)
      x = cos(pi * (j - 0.25_dp) / (n + 0.5_dp))
      do
        call polynomial(n, x, value, slope)
        change = value / slope
        x = x - change
        if (abs(change) < 4 * epsilon(x)) exit
      end do
      call polynomial(n, x, value, slope)
      mu(j) = x
      weight(j) = 2 / ((1 - x**2) * slope**2)
    end do
  end subroutine

  ! P_n(x) and its derivative, by (k + 1) P_k+1 = (2k + 1) x P_k - k P_k-1.
  subroutine polynomial(n, x, value, slope)
    integer, intent(in) :: n
    real(dp), intent(in) :: x
    real(dp), intent(out) :: value, slope
    real(dp) :: before, next
    integer :: k
    before = 1
    value = x
    do k = 1, n - 1
      next = ((2 * k + 1) * x * value - k * before) / (k + 1)
      before = value
      value = next
    end do
    slope = n * (before - x * value) / (1 - x**2)
  end subroutine

  ! The associated Legendre functions P_n^m(mu) for one m and n = m, ..., last, and their
  ! derivatives H_n^m = (1 - mu^2) d P_n^m / d mu. The integral of (P_n^m)^2 over -1 <= mu <= 1
  ! is 1. With e_n = sqrt((n^2 - m^2) / (4 n^2 - 1)):
  !   mu P_n = e_n+1 P_n+1 + e_n P_n-1,       H_n = (n + 1) e_n P_n-1 - n e_n+1 P_n+1.
  subroutine legendre_functions(m, last, mu, p, h)
    integer, intent(in) :: m, last
    real(dp), intent(in) :: mu
    real(dp), intent(out) :: p(m:), h(m:)
    real(dp) :: all(m - 1:last + 1)
    integer :: k, n
    all(m - 1) = 0
    all(m) = sqrt(0.5_dp)
    do k = 1, m
      all(m) = all(m) * sqrt((1 - mu**2) * (2 * k + 1) / (2 * k))
    end do
    do n = m, last
      all(n + 1) = (mu * all(n) - e(n) * all(n - 1)) / e(n + 1)
    end do
    do n = m, last
      p(n) = all(n)
      h(n) = (n + 1) * e(n) * all(n - 1) - n * e(n + 1) * all(n + 1)
    end do

  contains

    real(dp) function e(n)
      integer, intent(in) :: n
      e = sqrt(real(n - m, dp) * (n + m) / (4 * real(n, dp)**2 - 1))
    end function
  end subroutine
end module
