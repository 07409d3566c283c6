! Completion: tests and waits for one, any, some and all, persistent and partitioned requests, cancelling, generalized status.
#include "forms.h"
subroutine test_complete()
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 4
  integer :: rank, ranks, next, previous, i, round, ierr, outcount, which, index, count
  integer LASTING :: out(n), in(n), parts(2, n), received(2, n)
  integer :: indices(2 * n), statuses_size
  logical :: flag
  HANDLE(MPI_Request) :: requests(2 * n), request, none(2)
  A_STATUS(status)
  STATUSES(statuses, 2 * n)

  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  statuses_size = MPI_STATUS_SIZE
  call same(statuses_size, KW_STATUS_SIZE, 'MPI_STATUS_SIZE')

  do round = 1, 6
    in = -1
    do i = 1, n
      out(i) = 1000 * rank + 10 * round + i
      call MPI_Irecv(in(i), 1, MPI_INTEGER, previous, i, MPI_COMM_WORLD, requests(i), ierr)
      call MPI_Isend(out(i), 1, MPI_INTEGER, next, i, MPI_COMM_WORLD, requests(n + i), ierr)
    end do
    select case (round)
    case (1)
      call MPI_Waitall(2 * n, requests, statuses, ierr)
      call ok(ierr, 'MPI_Waitall')
      do i = 1, n
        call same(TAG_AT(statuses, i), i, 'a tag in the statuses of MPI_Waitall')
        call same(SOURCE_AT(statuses, i), previous, 'a source in the statuses of MPI_Waitall')
      end do
    case (2)
      do i = 1, 2 * n
        call MPI_Waitany(2 * n, requests, index, status, ierr)
        call ok(ierr, 'MPI_Waitany')
        call check(index >= 1 .and. index <= 2 * n, 'an index of MPI_Waitany does not count from 1')
        if (index <= n) call same(TAG_OF(status), index, 'the tag that MPI_Waitany tells')
      end do
      call MPI_Waitany(2 * n, requests, index, status, ierr)
      call same(index, MPI_UNDEFINED, 'the index of MPI_Waitany when all has ended')
    case (3)
      count = 0
      do while (count < 2 * n)
        call MPI_Waitsome(2 * n, requests, outcount, indices, statuses, ierr)
        call ok(ierr, 'MPI_Waitsome')
        if (outcount == MPI_UNDEFINED) exit
        do i = 1, outcount
          if (indices(i) <= n) call same(TAG_AT(statuses, i), indices(i), 'the tag that MPI_Waitsome tells')
        end do
        count = count + outcount
      end do
      call same(count, 2 * n, 'what MPI_Waitsome has completed')
    case (4)
      flag = .false.
      do while (.not. flag)
        call MPI_Testall(2 * n, requests, flag, MPI_STATUSES_IGNORE, ierr)
      end do
    case (5)
      count = 0
      do while (count < 2 * n)
        call MPI_Testany(2 * n, requests, index, flag, status, ierr)
        call ok(ierr, 'MPI_Testany')
        if (flag .and. index == MPI_UNDEFINED) exit
        if (flag) count = count + 1
      end do
      call same(count, 2 * n, 'what MPI_Testany has completed')
    case (6)
      count = 0
      do while (count < 2 * n)
        call MPI_Testsome(2 * n, requests, outcount, indices, MPI_STATUSES_IGNORE, ierr)
        if (outcount == MPI_UNDEFINED) exit
        do i = 1, outcount
          call check(indices(i) >= 1 .and. indices(i) <= 2 * n, 'an index of MPI_Testsome does not count from 1')
        end do
        count = count + outcount
      end do
      call same(count, 2 * n, 'what MPI_Testsome has completed')
    end select
    do i = 1, n
      call same(in(i), 1000 * previous + 10 * round + i, 'what came')
      call check(requests(i) == MPI_REQUEST_NULL, 'a request that has ended is not null')
    end do
  end do

  ! persistent requests
  call MPI_Recv_init(in, n, MPI_INTEGER, previous, 7, MPI_COMM_WORLD, requests(1), ierr)
  call ok(ierr, 'MPI_Recv_init')
  call MPI_Send_init(out, n, MPI_INTEGER, next, 7, MPI_COMM_WORLD, requests(2), ierr)
  call ok(ierr, 'MPI_Send_init')
  do round = 1, 3
    out = rank + round
    call MPI_Startall(2, requests, ierr)
    call ok(ierr, 'MPI_Startall')
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    call check(all(in == previous + round), 'a persistent receive has wrong data')
    call check(requests(1) /= MPI_REQUEST_NULL, 'a persistent request ends with its first round')
  end do
  call MPI_Request_free(requests(1), ierr)
  call check(requests(1) == MPI_REQUEST_NULL, 'a freed request is not null')
  call MPI_Request_free(requests(2), ierr)
  call MPI_Ssend_init(out, 1, MPI_INTEGER, next, 8, MPI_COMM_WORLD, request, ierr)
  call MPI_Start(request, ierr)
  call ok(ierr, 'MPI_Start')
  call MPI_Recv(in, 1, MPI_INTEGER, previous, 8, MPI_COMM_WORLD, status, ierr)
  call MPI_Wait(request, status, ierr)
  call MPI_Request_free(request, ierr)
  call MPI_Bsend_init(out, 1, MPI_INTEGER, next, 8, MPI_COMM_WORLD, request, ierr)
  call ok(ierr, 'MPI_Bsend_init')
  call MPI_Request_free(request, ierr)
  call MPI_Rsend_init(out, 1, MPI_INTEGER, next, 8, MPI_COMM_WORLD, request, ierr)
  call ok(ierr, 'MPI_Rsend_init')
  call MPI_Request_free(request, ierr)

  ! a partitioned message of n parts of two integers
  parts = reshape([(100 * rank + i, i = 1, 2 * n)], [2, n])
  received = -1
  call MPI_Psend_init(parts, n, int(2, MPI_COUNT_KIND), MPI_INTEGER, next, 5, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), ierr)
  call ok(ierr, 'MPI_Psend_init')
  call MPI_Precv_init(received, n, int(2, MPI_COUNT_KIND), MPI_INTEGER, previous, 5, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2), ierr)
  call ok(ierr, 'MPI_Precv_init')
  call MPI_Startall(2, requests, ierr)
  call MPI_Pready(0, requests(1), ierr)
  call ok(ierr, 'MPI_Pready')
  call MPI_Pready_range(1, 2, requests(1), ierr)
  call ok(ierr, 'MPI_Pready_range')
  call MPI_Pready_list(1, [3], requests(1), ierr)
  call ok(ierr, 'MPI_Pready_list')
  flag = .false.
  do while (.not. flag)
    call MPI_Parrived(requests(2), 3, flag, ierr)
    if (ierr /= MPI_SUCCESS) exit
  end do
  call check(received(2, 4) == 100 * previous + 8, 'a part has arrived, but is not there')
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  call check(all(received == reshape([(100 * previous + i, i = 1, 2 * n)], [2, n])), 'a partitioned message has wrong data')
  call MPI_Request_free(requests(1), ierr)
  call MPI_Request_free(requests(2), ierr)

  ! cancelling, statuses made by hand, looking without completing
  call MPI_Irecv(in, 1, MPI_INTEGER, previous, 77, MPI_COMM_WORLD, request, ierr)
  call MPI_Request_get_status(request, flag, status, ierr)
  call check(.not. flag, 'MPI_Request_get_status says that nothing has come')
  call MPI_Cancel(request, ierr)
  call ok(ierr, 'MPI_Cancel')
  call MPI_Wait(request, status, ierr)
  call MPI_Test_cancelled(status, flag, ierr)
  call check(flag, 'a receive was not cancelled')
  call MPI_Status_set_elements(status, MPI_INTEGER, 3, ierr)
  call MPI_Get_count(status, MPI_INTEGER, count, ierr)
  call same(count, 3, 'the count of a status made by hand')
  call MPI_Status_set_cancelled(status, .false., ierr)
  call MPI_Test_cancelled(status, flag, ierr)
  call check(.not. flag, 'MPI_Status_set_cancelled')
  call MPI_Status_set_source(status, 3, ierr)
  call MPI_Status_set_tag(status, 4, ierr)
  call MPI_Status_set_error(status, MPI_ERR_OTHER, ierr)
  call same(SOURCE_OF(status), 3, 'MPI_Status_set_source')
  call same(TAG_OF(status), 4, 'MPI_Status_set_tag')
  call same(ERROR_OF(status), MPI_ERR_OTHER, 'MPI_Status_set_error')
  call MPI_Status_get_source(status, which, ierr)
  call same(which, 3, 'MPI_Status_get_source')
  call MPI_Status_get_tag(status, which, ierr)
  call same(which, 4, 'MPI_Status_get_tag')
  call MPI_Status_get_error(status, which, ierr)
  call same(which, MPI_ERR_OTHER, 'MPI_Status_get_error')

  ! nothing to wait for, and what is wrong
  none = MPI_REQUEST_NULL
  call MPI_Waitall(2, none, MPI_STATUSES_IGNORE, ierr)
  call ok(ierr, 'MPI_Waitall for nothing')
  call MPI_Waitsome(2, none, outcount, indices, MPI_STATUSES_IGNORE, ierr)
  call same(outcount, MPI_UNDEFINED, 'the count of MPI_Waitsome for nothing')
  call MPI_Test(none(1), flag, status, ierr)
  call check(flag, 'MPI_Test of no request')
  call same(SOURCE_OF(status), MPI_ANY_SOURCE, 'the source of an empty status')
  call MPI_Waitall(-1, none, MPI_STATUSES_IGNORE, ierr)
  call fails(ierr, MPI_ERR_COUNT, 'a count of -1 requests')
  request = MPI_REQUEST_NULL
  call MPI_Start(request, ierr)
  call fails(ierr, MPI_ERR_REQUEST, 'MPI_Start of no request')
end subroutine
