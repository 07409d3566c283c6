! Calls that module mpi refuses: a compiler tells an error for each line that ends with a mark.
subroutine wrong
  use mpi
  implicit none
  integer :: n, ierr, dims(2), status(MPI_STATUS_SIZE), rank, comm, request
  integer(8) :: eight
  real :: x(10)
  logical :: periods(2)
  call MPI_Comm_rank(MPI_COMM_WORLD)                                             ! wrong: the result is missing
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr, n)                              ! wrong: too many arguments
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)                                       ! wrong: ierror is missing
  call MPI_Comm_rank(MPI_COMM_WORLD, eight, ierr)                                ! wrong: an integer of another kind
  call MPI_Comm_rank(MPI_COMM_WORLD, x(1), ierr)                                 ! wrong: a real for an integer
  call MPI_Send(x, 10.0, MPI_REAL, 0, 0, comm, ierr)                             ! wrong: a count that is real
  call MPI_Send(x, 10, MPI_REAL, 0, comm, ierr)                                  ! wrong: the tag is missing
  call MPI_Send(x, 10_8, MPI_REAL, 0, 0, comm, ierr)                             ! wrong: a count of eight bytes
  call MPI_Recv(x, 10, MPI_REAL, 0, 0, comm, ierr)                               ! wrong: the status is missing
  call MPI_Recv(x, 10, MPI_REAL, 0, 0, comm, n, ierr)                            ! wrong: a number for a status
  call MPI_Test(request, n, status, ierr)                                        ! wrong: an integer for a logical
  call MPI_Cart_create(comm, 2, dims, 1, .false., comm, ierr)                    ! wrong: an integer for logicals
  call MPI_Comm_set_name(comm, 17, ierr)                                         ! wrong: a number for a name
end subroutine
