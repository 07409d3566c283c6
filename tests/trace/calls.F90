! Four messages of ten integers from rank 0 to rank 1 with tag 3, one each way with tag 4.
program calls
  implicit none
  include 'mpif.h'
  integer :: rank, ierror, i, a(10), b(10), r, status(MPI_STATUS_SIZE)
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  a = 1
  do i = 1, 4
    if (rank == 0) call MPI_Send(a, 10, MPI_INTEGER, 1, 3, MPI_COMM_WORLD, ierror)
    if (rank == 1) call MPI_Recv(b, 10, MPI_INTEGER, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  end do
  call MPI_Irecv(b, 10, MPI_INTEGER, 1 - rank, 4, MPI_COMM_WORLD, r, ierror)
  call MPI_Send(a, 2, MPI_INTEGER, 1 - rank, 4, MPI_COMM_WORLD, ierror)
  call MPI_Wait(r, status, ierror)
  call MPI_Finalize(ierror)
end program
