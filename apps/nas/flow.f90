! flow: the equations of compressible viscous flow in a cube that lu, bt and sp solve.
!
! Five unknowns a point, u: density, three momenta, energy. L(u) is the sum over the three
! dimensions of minus the derivative of the flux, the viscous terms, and artificial dissipation of
! second and fourth order. What is solved is L(u) = L(u*) for a given polynomial u*, whose values
! hold on the faces of the cube: so the answer is known.
module flow
  use nas, only: dp, rank, agrees, finish
  implicit none
  private
  public :: set_problem, expect_errors, finish_flow, exact, initial, along

  ! The gas; what the dissipation counts, of second order in each dimension, and of fourth.
  real(dp), parameter, public :: c1 = 1.4_dp, c2 = 0.4_dp, c34 = 0.1_dp, c15 = 1.4_dp * 1.4_dp
  real(dp), parameter, public :: second(3) = [0.75_dp, 0.75_dp, 1._dp], fourth = 0.25_dp
  ! u*: the coefficients of 1; x, y, z; their squares; third powers; fourth powers.
  real(dp), parameter :: coefficients(13, 5) = reshape([ &
    2._dp, 0._dp, 0._dp, 4._dp, 5._dp, 3._dp, 0.5_dp, 0.02_dp, 0.01_dp, 0.03_dp, 0.5_dp, 0.4_dp, 0.3_dp, &
    1._dp, 0._dp, 0._dp, 0._dp, 1._dp, 2._dp, 3._dp, 0.01_dp, 0.03_dp, 0.02_dp, 0.4_dp, 0.3_dp, 0.5_dp, &
    2._dp, 2._dp, 0._dp, 0._dp, 0._dp, 2._dp, 3._dp, 0.04_dp, 0.03_dp, 0.05_dp, 0.3_dp, 0.5_dp, 0.4_dp, &
    2._dp, 2._dp, 0._dp, 0._dp, 0._dp, 2._dp, 3._dp, 0.03_dp, 0.05_dp, 0.04_dp, 0.2_dp, 0.1_dp, 0.3_dp, &
    5._dp, 4._dp, 3._dp, 2._dp, 0.1_dp, 0.4_dp, 0.3_dp, 0.05_dp, 0.04_dp, 0.03_dp, 0.1_dp, 0.3_dp, 0.2_dp], [13, 5])

  ! The problem: points a dimension, faces included; time steps and their length; the published
  ! residuals and errors, by unknown.
  integer, public, protected :: n, iterations
  real(dp), public, protected :: dt
  real(dp) :: published_residual(5), published_error(5)
  ! With h between two points 1 / h^2, 1 / 2h, 1 / h.
  real(dp), public, protected :: t1, t2, t3
  real(dp), parameter :: tolerance = 1e-8_dp

contains

  subroutine set_problem(points, steps, step, residual, error)
    integer, intent(in) :: points, steps
    real(dp), intent(in) :: step, residual(5), error(5)
    n = points
    iterations = steps
    dt = step
    published_residual = residual
    published_error = error
    t1 = real(n - 1, dp)**2
    t2 = (n - 1) / 2._dp
    t3 = n - 1
  end subroutine

  ! Replaces the published errors of `set_problem`.
  subroutine expect_errors(error)
    real(dp), intent(in) :: error(5)
    published_error = error
  end subroutine

  ! Reports the solution of the problem that `title` names, and ends the program. `counts`: how many
  ! operations an iteration has, the coefficients of 1, n, n^2 and n^3.
  subroutine finish_flow(title, seconds, counts, residual, error)
    character(*), intent(in) :: title
    real(dp), intent(in) :: seconds, counts(4), residual(5), error(5)
    character(64) :: problem
    if (rank == 0) then
      print '("residuals", 5es21.13)', residual
      print '("should be", 5es21.13)', published_residual
      print '("errors   ", 5es21.13)', error
      print '("should be", 5es21.13)', published_error
    end if
    write (problem, '(a, ": ", i0, "^3 points, ", i0, " iterations")') title, n, iterations
    call finish(trim(problem), seconds, iterations * dot_product(counts, real(n, dp)**[0, 1, 2, 3]), &
      agrees([residual, error], [published_residual, published_error], tolerance))
  end subroutine

  ! u* in a point of the whole grid.
  pure function exact(i, j, k)
    integer, intent(in) :: i, j, k
    real(dp) :: exact(5), x(3), powers(13)
    x = real([i, j, k] - 1, dp) / (n - 1)
    powers = [1._dp, x, x**2, x**3, x**4]
    exact = matmul(powers, coefficients)
  end function

  ! What u begins with: u* on the faces of the cube, and between them a blend of what is there.
  pure function initial(i, j, k)
    integer, intent(in) :: i, j, k
    real(dp) :: initial(5), x(5), y(5), z(5), at(3)
    if (any([i, j, k] == 1 .or. [i, j, k] == n)) then
      initial = exact(i, j, k)
    else
      at = real([i, j, k] - 1, dp) / (n - 1)
      x = (1 - at(1)) * exact(1, j, k) + at(1) * exact(n, j, k)
      y = (1 - at(2)) * exact(i, 1, k) + at(2) * exact(i, n, k)
      z = (1 - at(3)) * exact(i, j, 1) + at(3) * exact(i, j, n)
      initial = x + y + z - x * y - y * z - z * x + x * y * z
    end if
  end function

  ! Adds the part of L in dimension d to the sums of a line of m points, of which `before` are
  ! before the first; u has two more on each side, as far as there are as many.
  subroutine along(d, m, before, u, sum)
    integer, intent(in) :: d, m, before
    real(dp), intent(in) :: u(5, -1:m + 2)
    real(dp), intent(inout) :: sum(5, m)
    real(dp) :: flux(5, 0:m + 1), rates(5, 0:m + 1), stress(5, m + 1)
    integer :: i, low, high
    low = max(0, 1 - before)
    high = min(m + 1, n - before)
    do i = low, high
      call point(d, u(:, i), flux(:, i), rates(:, i))
    end do
    do i = max(1, low + 1), high                          ! half way between i - 1 and i
      stress(:, i) = c34 * t3**2 * (rates(:, i) - rates(:, i - 1))
    end do
    do i = max(1, 2 - before), min(m, n - 1 - before)
      sum(:, i) = sum(:, i) - t2 * (flux(:, i + 1) - flux(:, i - 1)) + stress(:, i + 1) - stress(:, i) &
        + second(d) * t1 * (u(:, i - 1) - 2 * u(:, i) + u(:, i + 1)) &
        - fourth * fourth_difference(before + i, u(:, i - 2:i + 2))
    end do
  end subroutine

  ! Of one point: the flux in dimension d, and that whose derivatives the viscous terms are:
  ! velocities (4/3 of the one along d), and for the energy kinetic energy and temperature.
  pure subroutine point(d, u, flux, rates)
    integer, intent(in) :: d
    real(dp), intent(in) :: u(5)
    real(dp), intent(out) :: flux(5), rates(5)
    real(dp) :: v(3), kinetic
    v = u(2:4) / u(1)
    kinetic = 0.5_dp * dot_product(u(2:4), v)
    flux(1) = u(1 + d)
    flux(2:4) = u(2:4) * v(d)
    flux(1 + d) = flux(1 + d) + c2 * (u(5) - kinetic)
    flux(5) = (c1 * u(5) - c2 * kinetic) * v(d)
    rates(1) = 0
    rates(2:4) = v
    rates(1 + d) = 4 * v(d) / 3
    rates(5) = 0.5_dp * (1 - c15) * dot_product(v, v) + v(d)**2 / 6 + c15 * u(5) / u(1)
  end subroutine

  ! The fourth difference around the point number g of n, one-sided next to the faces.
  pure function fourth_difference(g, u) result(f)
    integer, intent(in) :: g
    real(dp), intent(in) :: u(5, -2:2)
    real(dp) :: f(5)
    if (g == 2) then
      f = 5 * u(:, 0) - 4 * u(:, 1) + u(:, 2)
    else if (g == 3) then
      f = -4 * u(:, -1) + 6 * u(:, 0) - 4 * u(:, 1) + u(:, 2)
    else if (g == n - 2) then
      f = u(:, -2) - 4 * u(:, -1) + 6 * u(:, 0) - 4 * u(:, 1)
    else if (g == n - 1) then
      f = u(:, -2) - 4 * u(:, -1) + 5 * u(:, 0)
    else
      f = u(:, -2) - 4 * u(:, -1) + 6 * u(:, 0) - 4 * u(:, 1) + u(:, 2)
    end if
  end function
end module
