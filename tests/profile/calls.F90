! As calls.c: a line that ends with "PROFILE: CALLS BYTES" is called so often by both ranks together.
subroutine again(n, rank)
#ifdef KW_MPIF
  implicit none
  include 'mpif.h'
  integer :: e, s(MPI_STATUS_SIZE)
#else
  use mpi_f08
  implicit none
  integer :: e
  type(MPI_Status) :: s
#endif
  integer, intent(in) :: n, rank
  real(8) :: a(10), b(10)
  integer :: i
  a = rank
  do i = 1, n
    call MPI_Allreduce(a, b, 10, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, e) ! PROFILE: 14 1120
    call MPI_Allreduce(MPI_IN_PLACE, b, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, e) ! PROFILE: 14 224
  end do
  call MPI_Sendrecv(a, 4, MPI_REAL, 1 - rank, 0, b, 4, MPI_REAL, 1 - rank, 0, MPI_COMM_WORLD, s, e) ! PROFILE: 2 32
end subroutine

program calls
  implicit none
  include 'mpif.h'
  integer :: e, rank, x(3)
  call MPI_INIT(e) ! PROFILE: 2 0
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, e) ! PROFILE: 2 0
  call again(7, rank)
  call MPI_BCAST(x, 3, MPI_INTEGER, 0, MPI_COMM_WORLD, e) ! PROFILE: 2 24
  call MPI_FINALIZE(e) ! PROFILE: 2 0
end program
