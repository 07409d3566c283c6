! sp: the equations of compressible viscous flow in a cube, by alternating directions, with scalar
! systems of five diagonals along lines.
!
!   make apps && dist/bin/mpiexec -n 4 build/apps/sp W
!
! As bt, but what couples the five unknowns is made diagonal: T^-1 (dF/du) T has the speeds w, w, w,
! w + c, w - c of entropy, shear and sound. So in each dimension r is turned into these waves, each
! of which has a system of its own along a line, and back. The viscous terms count with their
! largest eigenvalue, and the dissipation of fourth order is part of the system, which gives it five
! diagonals.
!
! How the cube is cut, and which rank sends what, is explained in module cells: 22 numbers a line go forwards
! from cell to cell, 10 come back. The number of ranks must be a square.
module sp_lines
  use nas, only: dp
  use flow
  implicit none
  private
  public :: forward, backward
  ! Which system a wave has: three waves move with the flow, one before it, one behind.
  integer, parameter :: system_of(5) = [1, 1, 1, 2, 3]
  real(dp), parameter :: sign_of(3) = [0._dp, 1._dp, -1._dp]

contains

  ! Turns r into waves and eliminates what is before each point: wave(i) + p wave(i + 1) + s wave(i
  ! + 2) is left, with p and s of the three systems in `work`. The line's next piece needs p, s and
  ! waves of the last two points: 3, 3 and 5 numbers each.
  subroutine forward(d, m, low, high, before, u, r, work, carry)
    integer, intent(in) :: d, m, low, high, before
    real(dp), intent(in) :: u(5, -1:m + 2)
    real(dp), intent(inout) :: r(5, m), work(:, :), carry(:)
    real(dp) :: one(11), two(11), now(11), factor(3), back(3) ! of points i - 1, i - 2 and i
    real(dp) :: left(3), right(3), own(3), outer(2), inner(2), middle
    integer :: i
    one = carry(:11)
    two = carry(12:)
    do i = low, high
      call dissipation(before + i, outer, inner, middle)
      call speeds(d, -1._dp, u(:, i - 1), left)
      call speeds(d, 1._dp, u(:, i + 1), right)
      left = left + inner(1)
      right = right + inner(2)
      own = 1 + 2 * dt * t1 * stiffness(d, u(:, i)) + middle
      back = left - outer(1) * two(:3)
      factor = 1 / (own - outer(1) * two(4:6) - back * one(:3))
      now(:3) = (right - back * one(4:6)) * factor
      now(4:6) = outer(2) * factor
      now(7:) = (waves(d, u(:, i), r(:, i)) - outer(1) * two(7:) - back(system_of) * one(7:)) * factor(system_of)
      work(:6, i) = now(:6)
      r(:, i) = now(7:)
      two = one
      one = now
    end do
    carry = [one, two]
  end subroutine

  ! Solves for the waves, from the last point on, and turns them back.
  subroutine backward(d, m, low, high, before, u, r, work, carry)
    integer, intent(in) :: d, m, low, high, before
    real(dp), intent(in) :: u(5, -1:m + 2)
    real(dp), intent(inout) :: r(5, m), work(:, :), carry(:)
    real(dp) :: one(5), two(5), now(5)                    ! of points i + 1, i + 2 and i
    integer :: i
    one = carry(:5)
    two = carry(6:)
    do i = high, low, -1
      now = r(:, i) - work(system_of, i) * one - work(3 + system_of, i) * two
      r(:, i) = from_waves(d, u(:, i), now)
      two = one
      one = now
    end do
    carry = [one, two]
  end subroutine

  ! What the neighbour that has u, at side -1 or 1, counts in the three systems.
  pure subroutine speeds(d, side, u, diagonal)
    integer, intent(in) :: d
    real(dp), intent(in) :: side, u(5)
    real(dp), intent(out) :: diagonal(3)
    diagonal = dt * (side * t2 * (u(1 + d) / u(1) + sign_of * sound(u)) - t1 * stiffness(d, u))
  end subroutine

  ! The largest eigenvalue of the viscous terms, and the dissipation of second order.
  pure real(dp) function stiffness(d, u)
    integer, intent(in) :: d
    real(dp), intent(in) :: u(5)
    stiffness = second(d) + c15 * c34 / u(1)
  end function

  pure real(dp) function sound(u)
    real(dp), intent(in) :: u(5)
    sound = sqrt(c1 * c2 * (u(5) - 0.5_dp * dot_product(u(2:4), u(2:4)) / u(1)) / u(1))
  end function

  ! What the fourth difference counts around point g of n: two away before and behind, one away
  ! before and behind, and in the middle.
  pure subroutine dissipation(g, outer, inner, middle)
    integer, intent(in) :: g
    real(dp), intent(out) :: outer(2), inner(2), middle
    outer = merge([0, 1], merge([1, 0], [1, 1], g > n - 3), g < 4) * dt * fourth
    inner = merge([0, -4], merge([-4, 0], [-4, -4], g == n - 1), g == 2) * dt * fourth
    middle = merge(5, 6, g == 2 .or. g == n - 1) * dt * fourth
  end subroutine

  ! A change v of u as waves: entropy, two of shear, and sound along d and against it.
  pure function waves(d, u, v)
    integer, intent(in) :: d
    real(dp), intent(in) :: u(5), v(5)
    real(dp) :: waves(5), w(3), dw(3), pressure, c
    c = sound(u)
    w = u(2:4) / u(1)
    dw = (v(2:4) - w * v(1)) / u(1)
    pressure = c2 * (v(5) - dot_product(w, v(2:4)) + 0.5_dp * dot_product(w, w) * v(1))
    waves(1) = v(1) - pressure / c**2
    waves(2) = dw(1 + mod(d, 3))
    waves(3) = dw(1 + mod(d + 1, 3))
    waves(4) = pressure / (u(1) * c) + dw(d)
    waves(5) = pressure / (u(1) * c) - dw(d)
  end function

  pure function from_waves(d, u, x) result(v)
    integer, intent(in) :: d
    real(dp), intent(in) :: u(5), x(5)
    real(dp) :: v(5), w(3), dw(3), pressure, c
    c = sound(u)
    w = u(2:4) / u(1)
    dw(d) = 0.5_dp * (x(4) - x(5))
    dw(1 + mod(d, 3)) = x(2)
    dw(1 + mod(d + 1, 3)) = x(3)
    pressure = 0.5_dp * u(1) * c * (x(4) + x(5))
    v(1) = x(1) + pressure / c**2
    v(2:4) = w * v(1) + u(1) * dw
    v(5) = 0.5_dp * dot_product(w, w) * v(1) + u(1) * dot_product(w, dw) + pressure / c2
  end function
end module

program sp
  use nas
  use flow, only: set_problem
  use cells
  use sp_lines
  implicit none
  real(dp), parameter :: counts(4) = [-19272.4_dp, 11484.5_dp, -4683.91_dp, 881.174_dp]
  character(2) :: class

  class = start("sp", ["S", "W", "A"])
  select case (class)
  case ("W")
    call set_problem(36, 400, 1.5e-3_dp, &
      [0.1893253733584e-02_dp, 0.1717075447775e-03_dp, 0.2778153350936e-03_dp, &
       0.2887475409984e-03_dp, 0.3143611161242e-02_dp], &
      [0.7542088599534e-04_dp, 0.6512852253086e-05_dp, 0.1049092285688e-04_dp, &
       0.1128838671535e-04_dp, 0.1212845639773e-03_dp])
  case ("A")
    call set_problem(64, 400, 1.5e-3_dp, &
      [2.4799822399300195_dp, 1.1276337964368832_dp, 1.5028977888770491_dp, &
       1.4217816211695179_dp, 2.1292113035138280_dp], &
      [1.0900140297820550e-04_dp, 3.7343951769282091e-05_dp, 5.0092785406541633e-05_dp, &
       4.7671093939528255e-05_dp, 1.3621613399213001e-04_dp])
  case default
    call set_problem(12, 100, 1.5e-2_dp, &
      [2.7470315451339479e-02_dp, 1.0360746705285417e-02_dp, 1.6235745065095532e-02_dp, &
       1.5840557224455615e-02_dp, 3.4849040609362460e-02_dp], &
      [2.7289258557377227e-05_dp, 1.0364446640837285e-05_dp, 1.6154798287166471e-05_dp, &
       1.5750704994480102e-05_dp, 3.4177666183390531e-05_dp])
  end select
  call solve_in_sweeps("sp", "SP class "//trim(class), counts, 6, forward, 22, backward, 10)
end program
