! Buffers that are not declared asynchronous, as most programs have them: what comes while the program waits is seen.
#include "forms.h"
subroutine test_plain()
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer :: i
  do i = 1, 3
    call swap(i)
  end do
contains
  subroutine swap(value)
    integer, intent(in) :: value
    integer :: scalar, list(4), out, four(4), bottom, place(1), ierr, sums(2)
    integer(MPI_ADDRESS_KIND) :: address(1)
    HANDLE(MPI_Request) :: requests(4), sum_up
    HANDLE(MPI_Datatype) :: t
    scalar = 0
    list = 0
    call MPI_Irecv(scalar, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, requests(1), ierr)
    call MPI_Irecv(list, 4, MPI_INTEGER, 0, 2, MPI_COMM_SELF, requests(2), ierr)
    out = value
    four = value
    call MPI_Isend(out, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, requests(3), ierr)
    call MPI_Isend(four, 4, MPI_INTEGER, 0, 2, MPI_COMM_SELF, requests(4), ierr)
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierr)
    call check(scalar == value, 'a number that was received without blocking')
    call check(all(list == value), 'an array that was received without blocking')
    sums = 0
    call MPI_Iallreduce(four, sums, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, sum_up, ierr)
    call MPI_Wait(sum_up, MPI_STATUS_IGNORE, ierr)
    call check(all(sums == value), 'a sum without blocking')

    ! persistent: filled anew before each start
    call MPI_Recv_init(scalar, 1, MPI_INTEGER, 0, 3, MPI_COMM_SELF, requests(1), ierr)
    call MPI_Send_init(out, 1, MPI_INTEGER, 0, 3, MPI_COMM_SELF, requests(2), ierr)
    out = value + 10
    call MPI_Startall(2, requests, ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    call check(scalar == value + 10, 'a number that came to a persistent receive')
    call MPI_Request_free(requests(1), ierr)
    call MPI_Request_free(requests(2), ierr)

    ! by its address
    bottom = 0
    place = 1
    call MPI_Get_address(bottom, address(1), ierr)
    call MPI_Type_create_hindexed(1, place, address, MPI_INTEGER, t, ierr)
    call MPI_Type_commit(t, ierr)
    call MPI_Sendrecv(out, 1, MPI_INTEGER, 0, 4, MPI_BOTTOM, 1, t, 0, 4, MPI_COMM_SELF, MPI_STATUS_IGNORE, ierr)
    call check(bottom == value + 10, 'a number that was received by its address')
    call MPI_Type_free(t, ierr)
  end subroutine
end subroutine
