! packing.f90: two real lines in one complex transform.
!
! The rank's real values (levels and fields) lie side by side, two by two. Read as the real and the
! imaginary part of one complex line z = a + i b, they are transformed together, without a copy. The
! two are levels of the same field, for the rounding error of each is relative to the larger one:
! so the number of levels is even.
! The transform Z of z yields those of a and b, for a and b are real:
!   A(m) = (Z(m) + conj Z(N - m)) / 2,      B(m) = (Z(m) - conj Z(N - m)) / 2i.
module packing
  use sphere, only: dp
  implicit none
  private
  public :: separate, unite

contains

  ! Wave number m of `pairs` pairs of lines, times `scale`, from Z(m) = z and Z(N - m) = mirror.
  pure subroutine separate(pairs, scale, z, mirror, ab)
    integer, intent(in) :: pairs
    real(dp), intent(in) :: scale, z(2, pairs), mirror(2, pairs)
    real(dp), intent(out) :: ab(2, 2, pairs)     ! re and im, a and b
    integer :: k
    do k = 1, pairs
      ab(1, 1, k) = 0.5_dp * scale * (z(1, k) + mirror(1, k))
      ab(2, 1, k) = 0.5_dp * scale * (z(2, k) - mirror(2, k))
      ab(1, 2, k) = 0.5_dp * scale * (z(2, k) + mirror(2, k))
      ab(2, 2, k) = 0.5_dp * scale * (mirror(1, k) - z(1, k))
    end do
  end subroutine

  ! The way back: Z(m) = A(m) + i B(m) and Z(N - m) = conj A(m) + i conj B(m). For m = 0 both are
  ! the same place, and the imaginary parts of A(0) and B(0) are 0.
  pure subroutine unite(pairs, ab, z, mirror)
    integer, intent(in) :: pairs
    real(dp), intent(in) :: ab(2, 2, pairs)
    real(dp), intent(out) :: z(2, pairs), mirror(2, pairs)
    integer :: k
    do k = 1, pairs
      z(1, k) = ab(1, 1, k) - ab(2, 2, k)
      z(2, k) = ab(2, 1, k) + ab(1, 2, k)
      mirror(1, k) = ab(1, 1, k) + ab(2, 2, k)
      mirror(2, k) = ab(1, 2, k) - ab(2, 1, k)
    end do
  end subroutine
end module
