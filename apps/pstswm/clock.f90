! clock.f90: how much of a rank's time goes into communication.
!
! What is counted includes the waiting for others, and excludes packing. With overlap, what a rank
! computes while its messages are under way is not counted.
module clock
  use mpi_f08, only: MPI_Wtime
  use sphere, only: dp
  implicit none
  private
  integer, parameter, public :: in_fourier = 1, in_legendre = 2
  real(dp), protected, public :: spent(2) = 0     ! seconds of communication in either transform
  real(dp) :: since
  public :: start_clock, stop_clock, reset_clock

contains

  subroutine start_clock()
    since = MPI_Wtime()
  end subroutine

  subroutine stop_clock(what)
    integer, intent(in) :: what
    spent(what) = spent(what) + (MPI_Wtime() - since)
  end subroutine

  subroutine reset_clock()
    spent = 0
  end subroutine
end module
