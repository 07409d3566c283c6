! legendre.f90: the Legendre transform in latitude, as far as one rank computes it alone.
!
! A field is a sum of spherical harmonics, triangular truncation at M:
!   field(lambda, mu) = sum over m = -M ... M and n = |m| ... M of s(m, n) P_n^m(mu) e^(i m lambda)
! The coefficient of -m is the conjugate of that of m, so only m >= 0 are kept. For one m the
! inverse transform is a matrix product over n, the forward one (Gaussian quadrature) over the
! latitudes. Because P_n^m is even in mu where n - m is even, and odd where it is odd, both need
! only the northern latitudes, with the sums and differences of north and south.
!
! The rank's coefficients (m, n) lie in one list: for each of its m first n = m, m + 2, ..., then
! n = m + 1, m + 3, ... So a stretch with the same m and parity is a matrix.
module legendre
  use sphere, only: dp, radius, gauss, legendre_functions
  use options, only: truncation, latitudes, levels
  use mesh, only: x, owned, first_pair, pairs, lats
  implicit none
  private

  integer, protected, public :: coefficients                 ! how many the rank's m have
  integer, allocatable, protected, public :: m_of(:), n_of(:)
  real(dp), allocatable, protected, public :: laplacian(:)   ! n (n + 1) / radius^2, by coefficient
  real(dp), allocatable :: to_wind(:), one(:)                ! radius / (n (n + 1)), and 1
  real(dp), allocatable, protected, public :: mu(:), weight(:) ! the rank's pairs of latitudes
  real(dp), allocatable, protected, public :: p(:, :), h(:, :) ! P and H (coefficient, pair)

  type :: stretch
    integer :: m, i, parity         ! m, its number among the rank's, parity of n - m
    integer :: first, last          ! in the list of coefficients
  end type
  type(stretch), allocatable :: stretches(:)

  ! The fields of the inverse transform, and the products that the forward one starts from:
  ! A = U eta, B = V eta, C = U Phi', D = V Phi', E = (u^2 + v^2) / 2.
  integer, parameter, public :: zeta_ = 1, phi_ = 2, u_ = 3, v_ = 4, fields = 4
  integer, parameter, public :: a_ = 1, b_ = 2, c_ = 3, d_ = 4, e_ = 5, products = 5
  ! The variables in spectral space.
  integer, parameter, public :: divergence = 1, vorticity = 2, geopotential = 3, variables = 3

  public :: make_legendre, coefficients_from_waves, waves_from_coefficients

contains

  subroutine make_legendre()
    real(dp) :: all_mu(latitudes / 2), all_weights(latitudes / 2)
    real(dp) :: pn(0:truncation), hn(0:truncation)
    integer :: i, m, n, parity, j, c, count
    call gauss(all_mu, all_weights)
    mu = all_mu(first_pair:first_pair + pairs - 1)
    weight = all_weights(first_pair:first_pair + pairs - 1)
    coefficients = sum([(truncation - owned(x)%m(i) + 1, i = 1, size(owned(x)%m))])
    allocate (m_of(coefficients), n_of(coefficients), laplacian(coefficients))
    allocate (to_wind(coefficients), one(coefficients), source=1d0)
    allocate (p(coefficients, pairs), h(coefficients, pairs))
    allocate (stretches(2 * size(owned(x)%m)))
    c = 0
    count = 0
    do i = 1, size(owned(x)%m)
      m = owned(x)%m(i)
      do parity = 0, 1
        count = count + 1
        stretches(count) = stretch(m, i, parity, c + 1, c)
        do n = m + parity, truncation, 2
          c = c + 1
          m_of(c) = m
          n_of(c) = n
          laplacian(c) = n * (n + 1) / radius**2
          to_wind(c) = merge(radius / max(n * (n + 1), 1), 0d0, n > 0)
        end do
        stretches(count)%last = c
      end do
    end do
    do j = 1, pairs
      c = 0
      do i = 1, size(stretches)
        m = stretches(i)%m
        call legendre_functions(m, truncation, mu(j), pn(m:), hn(m:))
        do c = stretches(i)%first, stretches(i)%last
          p(c, j) = pn(n_of(c))
          h(c, j) = hn(n_of(c))
        end do
      end do
    end do
  end subroutine

  ! What the coefficients first ... last contribute to the fields zeta, Phi', U and V (the wind
  ! times cos(phi)) on the rank's latitudes: added to f, or stored there if `fresh` (then the range
  ! must be the whole list).
  !
  ! The wind follows from vorticity and divergence, with d_n = radius / (n (n + 1)):
  !   U = sum of d_n (zeta H - i m delta P),      V = - sum of d_n (i m zeta P + delta H).
  subroutine waves_from_coefficients(first, last, s, fresh, f)
    integer, intent(in) :: first, last
    real(dp), intent(in) :: s(2, levels, variables, first:last)
    logical, intent(in) :: fresh
    real(dp), intent(inout) :: f(2, levels, fields, 2, pairs, *)
    ! Sums of P zeta, P Phi'; d P delta, d P zeta; d H delta, d H zeta: even and odd in mu.
    real(dp) :: sums(2, levels, 6, pairs, 0:1)
    integer :: k, parity, from, to, j
    do k = 1, size(stretches), 2
      if (stretches(k + 1)%last < first .or. stretches(k)%first > last) cycle
      sums = 0
      do parity = 0, 1
        from = max(stretches(k + parity)%first, first)
        to = min(stretches(k + parity)%last, last)
        if (from > to) cycle
        call outward(4 * levels, from, to, p, one, s(1, 1, vorticity, from), &
          sums(1, 1, 1, 1, parity))
        call outward(4 * levels, from, to, p, to_wind, s(1, 1, divergence, from), &
          sums(1, 1, 3, 1, parity))
        call outward(4 * levels, from, to, h, to_wind, s(1, 1, divergence, from), &
          sums(1, 1, 5, 1, 1 - parity))
      end do
      do j = 1, pairs
        call mirror(stretches(k)%m, sums(:, :, :, j, 0), sums(:, :, :, j, 1), &
          f(:, :, :, :, j, stretches(k)%i))
      end do
    end do

  contains

    ! From even and odd sums to the fields in the north and in the south.
    pure subroutine mirror(m, even, odd, f)
      integer, intent(in) :: m
      real(dp), intent(in) :: even(2, levels, 6), odd(2, levels, 6)
      real(dp), intent(inout) :: f(2, levels, fields, 2)
      integer :: side, l
      real(dp) :: t(2, 6)
      if (fresh) f = 0
      do side = 1, 2
        do l = 1, levels
          t = even(:, l, :) + (3 - 2 * side) * odd(:, l, :)
          f(:, l, zeta_, side) = f(:, l, zeta_, side) + t(:, 1)
          f(:, l, phi_, side) = f(:, l, phi_, side) + t(:, 2)
          f(1, l, u_, side) = f(1, l, u_, side) + t(1, 6) + m * t(2, 3)
          f(2, l, u_, side) = f(2, l, u_, side) + t(2, 6) - m * t(1, 3)
          f(1, l, v_, side) = f(1, l, v_, side) - t(1, 5) + m * t(2, 4)
          f(2, l, v_, side) = f(2, l, v_, side) - t(2, 5) - m * t(1, 4)
        end do
      end do
    end subroutine
  end subroutine

  ! What the rank's latitudes contribute to the coefficients first ... last of
  !   vorticity     - div (u, v) eta             sum of w' (-i m A P + B H)
  !   divergence    k . curl (u, v) eta          sum of w' ( i m B P + A H)
  !                 - laplacian E                + w n (n + 1) / radius^2 E P
  !   geopotential  - div (u, v) Phi'            sum of w' (-i m C P + D H)
  ! where w is the Gaussian weight and w' = w / (radius (1 - mu^2)). The derivatives in latitude
  ! have gone over to P, by integration by parts: H = (1 - mu^2) dP/dmu.
  subroutine coefficients_from_waves(first, last, f, s)
    integer, intent(in) :: first, last
    real(dp), intent(in) :: f(2, levels, products, 2, pairs, *)
    real(dp), intent(out) :: s(2, levels, variables, first:last)
    ! What P multiplies (1 to 3, in the order of the variables), H (4 to 6), and the Laplacian (7):
    ! even and odd in mu.
    real(dp) :: terms(2, levels, 7, pairs, 0:1)
    integer :: k, parity, from, to
    do k = 1, size(stretches), 2
      if (stretches(k + 1)%last < first .or. stretches(k)%first > last) cycle
      call prepare(stretches(k)%m, f(:, :, :, :, :, stretches(k)%i))
      do parity = 0, 1
        from = max(stretches(k + parity)%first, first)
        to = min(stretches(k + parity)%last, last)
        if (from > to) cycle
        s(:, :, :, from:to) = 0
        call inward(6 * levels, from, to, p, one, terms(1, 1, 1, 1, parity), s(1, 1, 1, from))
        call inward(6 * levels, from, to, h, one, terms(1, 1, 4, 1, 1 - parity), s(1, 1, 1, from))
        call inward(2 * levels, from, to, p, laplacian, terms(1, 1, 7, 1, parity), &
          s(1, 1, divergence, from))
      end do
    end do

  contains

    subroutine prepare(m, f)
      integer, intent(in) :: m
      real(dp), intent(in) :: f(2, levels, products, 2, pairs)
      real(dp) :: w
      integer :: j
      do j = 1, pairs
        w = weight(j) / (radius * (1 - mu(j)**2))
        call turned(j, divergence, m * w, f(:, :, b_, 1, j), f(:, :, b_, 2, j))
        call turned(j, vorticity, -m * w, f(:, :, a_, 1, j), f(:, :, a_, 2, j))
        call turned(j, geopotential, -m * w, f(:, :, c_, 1, j), f(:, :, c_, 2, j))
        call plain(j, 3 + divergence, w, f(:, :, a_, 1, j), f(:, :, a_, 2, j))
        call plain(j, 3 + vorticity, w, f(:, :, b_, 1, j), f(:, :, b_, 2, j))
        call plain(j, 3 + geopotential, w, f(:, :, d_, 1, j), f(:, :, d_, 2, j))
        call plain(j, 7, weight(j), f(:, :, e_, 1, j), f(:, :, e_, 2, j))
      end do
    end subroutine

    ! The sum and the difference of north and south, times w.
    subroutine plain(j, place, w, north, south)
      integer, intent(in) :: j, place
      real(dp), intent(in) :: w, north(2, levels), south(2, levels)
      terms(:, :, place, j, 0) = w * (north + south)
      terms(:, :, place, j, 1) = w * (north - south)
    end subroutine

    ! The same times i.
    subroutine turned(j, place, w, north, south)
      integer, intent(in) :: j, place
      real(dp), intent(in) :: w, north(2, levels), south(2, levels)
      integer :: l
      do l = 1, levels
        terms(1, l, place, j, 0) = -w * (north(2, l) + south(2, l))
        terms(2, l, place, j, 0) = w * (north(1, l) + south(1, l))
        terms(1, l, place, j, 1) = -w * (north(2, l) - south(2, l))
        terms(2, l, place, j, 1) = w * (north(1, l) - south(1, l))
      end do
    end subroutine
  end subroutine

  ! The matrix products. A vector is q numbers: real and imaginary parts of some variables on all
  ! levels. Four vectors are added to two others at once: what is loaded is used twice, and what is
  ! stored has been added to four times.

  ! For each pair of latitudes: the sum over the coefficients from ... to of a(coefficient) times
  ! table(coefficient, pair) times scale(coefficient), added to c(pair).
  pure subroutine outward(q, from, to, table, scale, a, c)
    integer, intent(in) :: q, from, to
    real(dp), intent(in) :: table(coefficients, pairs), scale(coefficients)
    real(dp), intent(in) :: a(2 * levels * variables, from:*)
    real(dp), intent(inout) :: c(2 * levels * 6, *)
    real(dp) :: w(4, 2)
    integer :: i, j, next
    do j = 1, pairs, 2
      next = min(j + 1, pairs)
      do i = from, to - 3, 4
        w(:, 1) = table(i:i + 3, j) * scale(i:i + 3)
        w(:, 2) = table(i:i + 3, next) * scale(i:i + 3)
        if (next == j) then
          call add_to_one(q, w, a(1, i), a(1, i + 1), a(1, i + 2), a(1, i + 3), c(1, j))
        else
          call add_to_two(q, w, a(1, i), a(1, i + 1), a(1, i + 2), a(1, i + 3), c(1, j), c(1, next))
        end if
      end do
      do i = i, to
        c(:q, j) = c(:q, j) + table(i, j) * scale(i) * a(:q, i)
        if (next > j) c(:q, next) = c(:q, next) + table(i, next) * scale(i) * a(:q, i)
      end do
    end do
  end subroutine

  ! For each of the coefficients from ... to: the sum over the pairs of latitudes of a(pair) times
  ! table(coefficient, pair) times scale(coefficient), added to c(coefficient).
  pure subroutine inward(q, from, to, table, scale, a, c)
    integer, intent(in) :: q, from, to
    real(dp), intent(in) :: table(coefficients, pairs), scale(coefficients)
    real(dp), intent(in) :: a(2 * levels * 7, *)
    real(dp), intent(inout) :: c(2 * levels * variables, from:*)
    real(dp) :: w(4, 2)
    integer :: i, j, next
    do i = from, to, 2
      next = min(i + 1, to)
      do j = 1, pairs - 3, 4
        w(:, 1) = table(i, j:j + 3) * scale(i)
        w(:, 2) = table(next, j:j + 3) * scale(next)
        if (next == i) then
          call add_to_one(q, w, a(1, j), a(1, j + 1), a(1, j + 2), a(1, j + 3), c(1, i))
        else
          call add_to_two(q, w, a(1, j), a(1, j + 1), a(1, j + 2), a(1, j + 3), c(1, i), c(1, next))
        end if
      end do
      do j = j, pairs
        c(:q, i) = c(:q, i) + table(i, j) * scale(i) * a(:q, j)
        if (next > i) c(:q, next) = c(:q, next) + table(next, j) * scale(next) * a(:q, j)
      end do
    end do
  end subroutine

  pure subroutine add_to_two(q, w, a1, a2, a3, a4, c1, c2)
    integer, intent(in) :: q
    real(dp), intent(in) :: w(4, 2), a1(q), a2(q), a3(q), a4(q)
    real(dp), intent(inout) :: c1(q), c2(q)
    integer :: i
    do i = 1, q
      c1(i) = c1(i) + (w(1, 1) * a1(i) + w(2, 1) * a2(i) + w(3, 1) * a3(i) + w(4, 1) * a4(i))
      c2(i) = c2(i) + (w(1, 2) * a1(i) + w(2, 2) * a2(i) + w(3, 2) * a3(i) + w(4, 2) * a4(i))
    end do
  end subroutine

  pure subroutine add_to_one(q, w, a1, a2, a3, a4, c1)
    integer, intent(in) :: q
    real(dp), intent(in) :: w(4, 2), a1(q), a2(q), a3(q), a4(q)
    real(dp), intent(inout) :: c1(q)
    integer :: i
    do i = 1, q
      c1(i) = c1(i) + (w(1, 1) * a1(i) + w(2, 1) * a2(i) + w(3, 1) * a3(i) + w(4, 1) * a4(i))
    end do
  end subroutine
end module
