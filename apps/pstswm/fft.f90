! fft.f90: the fast Fourier transform of many complex lines at once, for lengths 2^a 3^b 5^c.
!
! A line's points lie `lines` apart: x(:, line, point), the first index being real and imaginary
! part. So the innermost loops run over the lines, which lie side by side, and vectorise.
!
! The algorithm is Stockham's: each stage takes a factor r off the length and writes its results
! in an order such that the last stage leaves the coefficients sorted, without bit reversal.
module fft
  use sphere, only: dp, pi
  implicit none
  private
  public :: fft_plan, fft_make, fft_run

  type :: fft_plan
    integer :: length = 0
    integer, allocatable :: factors(:)
    real(dp), allocatable :: twiddles(:, :)   ! exp(2 pi i k / length): (1:2, 0:length - 1)
  end type

contains

  ! A plan for lines of `length` points; `possible` is false if 2, 3 and 5 do not make it up.
  subroutine fft_make(length, plan, possible)
    integer, intent(in) :: length
    type(fft_plan), intent(out) :: plan
    logical, intent(out) :: possible
    integer, parameter :: radices(4) = [4, 2, 3, 5]
    integer :: rest, i, k
    plan%length = length
    allocate (plan%factors(0))
    rest = length
    do i = 1, size(radices)
      do while (rest > 1 .and. mod(rest, radices(i)) == 0)
        plan%factors = [plan%factors, radices(i)]
        rest = rest / radices(i)
      end do
    end do
    possible = rest == 1
    allocate (plan%twiddles(2, 0:length - 1))
    do k = 0, length - 1
      plan%twiddles(:, k) = [cos(2 * pi * k / length), sin(2 * pi * k / length)]
    end do
  end subroutine

  ! x(k) becomes the sum over j of x(j) exp(sign 2 pi i j k / length); nothing is divided by the
  ! length. `work` is as large as x.
  subroutine fft_run(plan, sign, lines, x, work)
    type(fft_plan), intent(in) :: plan
    integer, intent(in) :: sign, lines
    real(dp), intent(inout) :: x(2 * lines * plan%length), work(2 * lines * plan%length)
    integer :: i, stride, rest
    logical :: in_x
    stride = lines
    rest = plan%length
    in_x = mod(size(plan%factors), 2) == 0
    if (.not. in_x) work = x
    do i = 1, size(plan%factors)
      rest = rest / plan%factors(i)
      if (in_x) then
        call stage(plan, sign, plan%factors(i), stride, rest, x, work)
      else
        call stage(plan, sign, plan%factors(i), stride, rest, work, x)
      end if
      in_x = .not. in_x
      stride = stride * plan%factors(i)
    end do
  end subroutine

  ! One stage: transforms of length r over the last index of x(:, s, m, r), which go, turned by
  ! the twiddle factors exp(sign 2 pi i j p / (m r)), to y(:, s, r, m).
  subroutine stage(plan, sign, r, s, m, x, y)
    type(fft_plan), intent(in) :: plan
    integer, intent(in) :: sign, r, s, m
    real(dp), intent(in) :: x(2, s, m, r)
    real(dp), intent(out) :: y(2, s, r, m)
    real(dp) :: w(2, 0:r - 1)
    integer :: p, j
    do p = 1, m
      do j = 0, r - 1
        w(:, j) = root(plan, sign, m * r, j * (p - 1))
      end do
      select case (r)
      case (2)
        call butterfly2(s, w(:, 1), x(:, :, p, 1), x(:, :, p, 2), y(:, :, 1, p), y(:, :, 2, p))
      case (4)
        call butterfly4(s, sign, w, x(:, :, p, 1), x(:, :, p, 2), x(:, :, p, 3), x(:, :, p, 4), &
          y(:, :, 1, p), y(:, :, 2, p), y(:, :, 3, p), y(:, :, 4, p))
      case default
        do j = 0, r - 1
          call butterfly(plan, sign, s, r, j, w(:, j), x(:, :, p, :), y(:, :, j + 1, p))
        end do
      end select
    end do
  end subroutine

  ! exp(sign 2 pi i k / n), where n divides the plan's length.
  pure function root(plan, sign, n, k) result(w)
    type(fft_plan), intent(in) :: plan
    integer, intent(in) :: sign, n, k
    real(dp) :: w(2)
    w = plan%twiddles(:, mod(k, n) * (plan%length / n))
    w(2) = sign * w(2)
  end function

  pure subroutine butterfly2(s, w, a, b, y0, y1)
    integer, intent(in) :: s
    real(dp), intent(in) :: w(2), a(2, s), b(2, s)
    real(dp), intent(out) :: y0(2, s), y1(2, s)
    real(dp) :: re, im
    integer :: q
    do q = 1, s
      re = a(1, q) - b(1, q)
      im = a(2, q) - b(2, q)
      y0(1, q) = a(1, q) + b(1, q)
      y0(2, q) = a(2, q) + b(2, q)
      y1(1, q) = re * w(1) - im * w(2)
      y1(2, q) = re * w(2) + im * w(1)
    end do
  end subroutine

  pure subroutine butterfly4(s, sign, w, a, b, c, d, y0, y1, y2, y3)
    integer, intent(in) :: s, sign
    real(dp), intent(in) :: w(2, 0:3), a(2, s), b(2, s), c(2, s), d(2, s)
    real(dp), intent(out) :: y0(2, s), y1(2, s), y2(2, s), y3(2, s)
    real(dp) :: even(2), odd(2), sum(2), turned(2), re, im
    integer :: q
    do q = 1, s
      even(1) = a(1, q) + c(1, q)
      even(2) = a(2, q) + c(2, q)
      odd(1) = a(1, q) - c(1, q)
      odd(2) = a(2, q) - c(2, q)
      sum(1) = b(1, q) + d(1, q)
      sum(2) = b(2, q) + d(2, q)
      turned(1) = -sign * (b(2, q) - d(2, q))       ! sign i (b - d)
      turned(2) = sign * (b(1, q) - d(1, q))
      y0(1, q) = even(1) + sum(1)
      y0(2, q) = even(2) + sum(2)
      re = odd(1) + turned(1)
      im = odd(2) + turned(2)
      y1(1, q) = re * w(1, 1) - im * w(2, 1)
      y1(2, q) = re * w(2, 1) + im * w(1, 1)
      re = even(1) - sum(1)
      im = even(2) - sum(2)
      y2(1, q) = re * w(1, 2) - im * w(2, 2)
      y2(2, q) = re * w(2, 2) + im * w(1, 2)
      re = odd(1) - turned(1)
      im = odd(2) - turned(2)
      y3(1, q) = re * w(1, 3) - im * w(2, 3)
      y3(2, q) = re * w(2, 3) + im * w(1, 3)
    end do
  end subroutine

  ! One result of a transform of length r, as its definition has it: for the factors 3 and 5.
  pure subroutine butterfly(plan, sign, s, r, j, w, x, y)
    type(fft_plan), intent(in) :: plan
    integer, intent(in) :: sign, s, r, j
    real(dp), intent(in) :: w(2), x(:, :, :)
    real(dp), intent(out) :: y(2, s)
    real(dp) :: v(2), re
    integer :: k, q
    y = 0
    do k = 0, r - 1
      v = root(plan, sign, r, j * k)
      do q = 1, s
        y(1, q) = y(1, q) + x(1, q, k + 1) * v(1) - x(2, q, k + 1) * v(2)
        y(2, q) = y(2, q) + x(1, q, k + 1) * v(2) + x(2, q, k + 1) * v(1)
      end do
    end do
    do q = 1, s
      re = y(1, q)
      y(1, q) = re * w(1) - y(2, q) * w(2)
      y(2, q) = re * w(2) + y(2, q) * w(1)
    end do
  end subroutine
end module
