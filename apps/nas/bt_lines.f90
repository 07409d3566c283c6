! bt_lines: what bt and btio do along a line of the cube, and their problems.
module bt_lines
  use nas, only: dp
  use flow
  implicit none
  private
  public :: set_bt_problem, forward, backward

  ! How many operations an iteration has: the coefficients of 1, n, n^2 and n^3.
  real(dp), parameter, public :: counts(4) = [0._dp, 28023.7_dp, -17655.7_dp, 3478.8_dp]

contains

  ! Sets the problem of a class, with the residuals and errors that were published for bt.
  subroutine set_bt_problem(class)
    character(*), intent(in) :: class
    select case (class)
    case ("W")
      call set_problem(24, 200, 0.8e-3_dp, &
        [0.1125590409344e+03_dp, 0.1180007595731e+02_dp, 0.2710329767846e+02_dp, &
         0.2469174937669e+02_dp, 0.2638427874317e+03_dp], &
        [0.4419655736008e+01_dp, 0.4638531260002e+00_dp, 0.1011551749967e+01_dp, &
         0.9235878729944e+00_dp, 0.1018045837718e+02_dp])
    case ("A")
      call set_problem(64, 200, 0.8e-3_dp, &
        [1.0806346714637264e+02_dp, 1.1319730901220813e+01_dp, 2.5974354511582465e+01_dp, &
         2.3665622544678910e+01_dp, 2.5278963211748344e+02_dp], &
        [4.2348416040525025e+00_dp, 4.4390282496995698e-01_dp, 9.6692480136345650e-01_dp, &
         8.8302063039765474e-01_dp, 9.7379901770829278e+00_dp])
    case default
      call set_problem(12, 60, 1e-2_dp, &
        [1.7034283709541311e-01_dp, 1.2975252070034097e-02_dp, 3.2527926989486055e-02_dp, &
         2.6436421275166801e-02_dp, 1.9211784131744430e-01_dp], &
        [4.9976913345811579e-04_dp, 4.5195666782961927e-05_dp, 7.3973765172921357e-05_dp, &
         7.3821238632439731e-05_dp, 8.9269630987491446e-04_dp])
    end select
  end subroutine

  ! Eliminates what is before each point: r(i) + C(i) r(i + 1) is left, with C in `work`. The line's
  ! next piece needs C and r of the last point.
  subroutine forward(d, m, low, high, before, u, r, work, carry)
    integer, intent(in) :: d, m, low, high, before
    real(dp), intent(in) :: u(5, -1:m + 2)
    real(dp), intent(inout) :: r(5, m), work(:, :), carry(:)
    real(dp) :: lower(5, 5), own(5, 5), right(5, 6), known(5, 6)
    integer :: i
    known = reshape(carry, [5, 6])
    do i = low, high
      call neighbour_block(d, -1._dp, u(:, i - 1), lower)
      call own_block(d, u(:, i), own)
      call neighbour_block(d, 1._dp, u(:, i + 1), right(:, :5))
      right(:, 6) = r(:, i)
      call subtract_product(lower, known, own, right(:, 6))
      call solve(own, right)
      known = right
      work(:25, i) = reshape(right(:, :5), [25])
      r(:, i) = right(:, 6)
    end do
    carry = reshape(known, [30])
  end subroutine

  ! r(i) = r(i) - C(i) r(i + 1).
  subroutine backward(d, m, low, high, before, u, r, work, carry)
    integer, intent(in) :: d, m, low, high, before
    real(dp), intent(in) :: u(5, -1:m + 2)
    real(dp), intent(inout) :: r(5, m), work(:, :), carry(:)
    integer :: i, k
    do i = high, low, -1
      do k = 1, 5
        r(:, i) = r(:, i) - work(5 * k - 4:5 * k, i) * carry(k)
      end do
      carry = r(:, i)
    end do
  end subroutine

  ! own = own - lower known(:, 1:5), and r in the same way with known(:, 6).
  pure subroutine subtract_product(lower, known, own, r)
    real(dp), intent(in) :: lower(5, 5), known(5, 6)
    real(dp), intent(inout) :: own(5, 5), r(5)
    integer :: j, k
    do j = 1, 5
      do k = 1, 5
        own(:, j) = own(:, j) - lower(:, k) * known(k, j)
      end do
    end do
    do k = 1, 5
      r = r - lower(:, k) * known(k, 6)
    end do
  end subroutine

  ! x = a^-1 x, by elimination without exchange of rows; a is used up.
  pure subroutine solve(a, x)
    real(dp), intent(inout) :: a(5, 5), x(5, 6)
    real(dp) :: factor
    integer :: i, j
    do i = 1, 5
      factor = 1 / a(i, i)
      a(i, :) = a(i, :) * factor
      x(i, :) = x(i, :) * factor
      do j = 1, 5
        if (j == i) cycle
        factor = a(j, i)
        a(j, :) = a(j, :) - factor * a(i, :)
        x(j, :) = x(j, :) - factor * x(i, :)
      end do
    end do
  end subroutine

  ! The block of a neighbour that has u, at side -1 or 1.
  pure subroutine neighbour_block(d, side, u, block)
    integer, intent(in) :: d
    real(dp), intent(in) :: side, u(5)
    real(dp), intent(out) :: block(5, 5)
    real(dp) :: stress(5, 5)
    integer :: i
    call derivatives(d, u, block, stress)
    block = dt * (side * t2 * block - t1 * c34 * stress)
    do i = 1, 5
      block(i, i) = block(i, i) - dt * t1 * second(d)
    end do
  end subroutine

  ! The block of a point itself.
  pure subroutine own_block(d, u, block)
    integer, intent(in) :: d
    real(dp), intent(in) :: u(5)
    real(dp), intent(out) :: block(5, 5)
    real(dp) :: flux(5, 5)
    integer :: i
    call derivatives(d, u, flux, block)
    block = 2 * dt * t1 * c34 * block
    do i = 1, 5
      block(i, i) = block(i, i) + 1 + 2 * dt * t1 * second(d)
    end do
  end subroutine

  ! The derivatives by u of the flux in dimension d, and of what the viscous terms are derivatives
  ! of.
  pure subroutine derivatives(d, u, flux, stress)
    integer, intent(in) :: d
    real(dp), intent(in) :: u(5)
    real(dp), intent(out) :: flux(5, 5), stress(5, 5)
    real(dp) :: density, w(3), kinetic, enthalpy, weight
    integer :: m
    density = 1 / u(1)
    w = u(2:4) * density
    kinetic = 0.5_dp * dot_product(w, w)
    enthalpy = c1 * u(5) * density - c2 * kinetic
    flux = 0
    stress = 0
    flux(1, 1 + d) = 1
    do m = 1, 3
      flux(1 + m, 1) = -w(m) * w(d)
      flux(1 + m, 1 + m) = w(d)
    end do
    flux(2:4, 1 + d) = flux(2:4, 1 + d) + w
    flux(1 + d, :) = flux(1 + d, :) + c2 * [kinetic, -w, 1._dp]    ! the pressure's
    flux(5, :) = w(d) * [c2 * kinetic - enthalpy, -c2 * w, c1]
    flux(5, 1 + d) = flux(5, 1 + d) + enthalpy

    stress(5, 1) = -c15 * u(5) * density**2
    do m = 1, 3
      weight = merge(4 / 3._dp, 1._dp, m == d)
      stress(1 + m, 1) = -weight * w(m) * density
      stress(1 + m, 1 + m) = weight * density
      stress(5, 1 + m) = (weight - c15) * w(m) * density
      stress(5, 1) = stress(5, 1) - (weight - c15) * w(m)**2 * density
    end do
    stress(5, 5) = c15 * density
  end subroutine
end module
