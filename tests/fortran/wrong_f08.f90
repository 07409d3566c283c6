! Calls that mpi_f08 refuses: a compiler tells an error for each line that ends with a mark.
subroutine wrong
  use mpi_f08
  implicit none
  integer :: n, ierr, dims(2), old(MPI_STATUS_SIZE), rank
  integer(8) :: eight
  real :: x(10)
  logical :: flag, periods(2)
  type(MPI_Comm) :: comm
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  type(MPI_Datatype) :: t
  call MPI_Comm_rank(91, rank)                                                   ! wrong: a handle is not an integer
  call MPI_Comm_rank(MPI_INTEGER, rank)                                          ! wrong: a datatype for a communicator
  call MPI_Comm_rank(MPI_COMM_WORLD)                                             ! wrong: the result is missing
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr, n)                              ! wrong: too many arguments
  call MPI_Comm_rank(MPI_COMM_WORLD, eight)                                      ! wrong: an integer of another kind
  call MPI_Comm_rank(MPI_COMM_WORLD, x(1))                                       ! wrong: a real for an integer
  call MPI_Send(x, 10.0, MPI_REAL, 0, 0, comm)                                   ! wrong: a count that is real
  call MPI_Send(x, 10, MPI_REAL, 0, comm)                                        ! wrong: the tag is missing
  call MPI_Send(x, 10, comm, 0, 0, MPI_REAL)                                     ! wrong: two arguments are swapped
  call MPI_Send(x, 10, MPI_REAL, 0, 0_8, comm)                                   ! wrong: a tag of eight bytes
  call MPI_Recv(x, 10, MPI_REAL, 0, 0, comm, old)                                ! wrong: a status is not an array
  call MPI_Recv(x, 10, MPI_REAL, 0, 0, comm)                                     ! wrong: the status is missing
  call MPI_Wait(comm, status)                                                    ! wrong: a communicator for a request
  call MPI_Waitall(1, request, MPI_STATUSES_IGNORE)                              ! wrong: one request for an array
  call MPI_Test(request, n, status)                                              ! wrong: an integer for a logical
  call MPI_Cart_create(comm, 2, n, periods, .false., comm)                       ! wrong: a number for an array
  call MPI_Cart_create(comm, 2, dims, 1, .false., comm)                          ! wrong: an integer for logicals
  call MPI_Type_commit(MPI_INTEGER)                                              ! wrong: a constant would be changed
  call MPI_Comm_set_name(comm, 17)                                               ! wrong: a number for a name
  call MPI_Bcast(x, 10, MPI_REAL, root=0, communicator=comm)                     ! wrong: there is no such argument
  call MPI_Op_create(0, .true., MPI_SUM)                                         ! wrong: a number for a procedure
  call MPI_Comm_split(comm, .true., 0, comm)                                     ! wrong: a logical for an integer
  call MPI_Get_count(status, t, x)                                               ! wrong: reals for the count
  flag = request == comm                                                         ! wrong: handles of two types
  n = comm                                                                       ! wrong: a handle is not an integer
end subroutine
