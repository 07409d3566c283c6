! Array sections that go through copies, whose requests C completes: a section has what came when C's call has returned, and nothing else
! in it has changed.
#include "forms.h"
#if defined(KW_F08)
#define NUMBER(r) r%MPI_VAL
#else
#define NUMBER(r) r
#endif
subroutine test_completed_in_c()
  USE_MPI
  use checks
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  interface
    integer(c_int) function c_complete(n, requests, way) bind(C)
      import c_int
      integer(c_int), value :: n, way
      integer(c_int) :: requests(n)
    end function
  end interface
  enum, bind(C)
    enumerator :: by_wait, waitall, waitany, waitsome, by_test, testall, testany, testsome, look, look_all, look_any, look_some, &
      free, cancel, start
  end enum
  character(len=*), parameter :: ways(0:14) = [character(len=10) :: 'MPI_Wait', 'Waitall', 'Waitany', 'Waitsome', 'Test', 'Testall', &
    'Testany', 'Testsome', 'get_status', '..._all', '..._any', '..._some', 'free', 'cancel', 'start']
  integer, parameter :: n = 12
  integer, asynchronous :: plate(n, n), other(n, n)
  integer, allocatable, asynchronous :: columns(:, :), rows(:, :)
  integer :: rank, ranks, next, previous, ierr, i, way, round, mine(3), theirs(3), word(1)
  integer, asynchronous :: line(n)
  HANDLE(MPI_Request) :: requests(2)
  HANDLE(MPI_Datatype) :: t

  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  mine = 10 * rank + [1, 2, 3]
  theirs = 10 * previous + [1, 2, 3]
  ! an element of this type is no part of an element of a section: it goes through a copy
  call MPI_Type_vector(3, 1, 2, MPI_INTEGER, t, ierr)
  call MPI_Type_commit(t, ierr)

  ! two receives share a section: one has its first, third and fifth element, the other the second, fourth and sixth
  do way = by_wait, look_some
    call clear()
    call MPI_Irecv(other(2, :), 1, t, previous, 1, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Irecv(other(2, 2:), 1, t, previous, 2, MPI_COMM_WORLD, requests(2), ierr)
    call send(mine, 1)
    call send(mine + 100, 2)
    call same(handed(2, way), MPI_SUCCESS, ways(way))
    call came(ways(way))
    if (way >= look) then ! a request that was looked at is there still
      call same(handed(2, free), MPI_SUCCESS, 'MPI_Request_free after '//ways(way))
      call came('free after '//ways(way))
    end if
    call check(NUMBER(requests(1)) == NUMBER(MPI_REQUEST_NULL) .and. NUMBER(requests(2)) == NUMBER(MPI_REQUEST_NULL), &
               'requests are left by '//ways(way))
  end do

  ! the same in Fortran, and one of them blocking, which copies a short section, too
  call clear()
  call MPI_Irecv(other(2, :), 1, t, previous, 1, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_Irecv(other(2, 2:), 1, t, previous, 2, MPI_COMM_WORLD, requests(2), ierr)
  call send(mine + 100, 2)
  call send(mine, 1)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  call came('Waitall in Fortran')
  call clear()
  call MPI_Irecv(other(2, 2:), 1, t, previous, 2, MPI_COMM_WORLD, requests(2), ierr)
  call send(mine + 100, 2)
  call send(mine, 1)
  call MPI_Recv(other(2, :), 1, t, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call MPI_Wait(requests(2), MPI_STATUS_IGNORE, ierr)
  call came('MPI_Recv beside MPI_Irecv')

  ! freed while it goes on: what comes after the message says that it has come
  call clear()
  call MPI_Irecv(other(2, :), 1, t, previous, 1, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_Irecv(other(2, 2:), 1, t, previous, 2, MPI_COMM_WORLD, requests(2), ierr)
  call same(handed(2, free), MPI_SUCCESS, 'freeing what goes on')
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call send(mine, 1)
  call send(mine + 100, 2)
  call send([rank], 3)
  call MPI_Recv(word, 1, MPI_INTEGER, previous, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call same(word(1), previous, 'what comes after')
  call came('freed')

  ! fewer elements than the receive has room for, and more
  do way = by_wait, look
    call clear()
    call MPI_Irecv(other(2, :), 1, t, previous, 1, MPI_COMM_WORLD, requests(1), ierr)
    call send(mine(1:2), 1)
    call same(handed(1, way), MPI_SUCCESS, 'a short message by '//ways(way))
    call check(all(other(2, 1:3:2) == theirs(1:2)) .and. count(other /= -1) == 2, 'a short message by '//ways(way))
    if (way == look) call same(handed(1, free), MPI_SUCCESS, 'freeing what a short message came for')
  end do
  do way = by_wait, testsome
    call clear()
    call MPI_Irecv(other(2, :), 1, t, previous, 1, MPI_COMM_WORLD, requests(1), ierr)
    call send([mine, mine], 1)
    i = handed(1, way)
    call check(i /= MPI_SUCCESS, 'a long message is no error by '//ways(way))
    if (way == by_wait) call fails(i, MPI_ERR_TRUNCATE, 'a long message')
    call check(all(other(2, 1:5:2) == theirs) .and. count(other /= -1) == 3, 'a long message by '//ways(way))
  end do

  ! cancelled: nothing has come
  call clear()
  call MPI_Irecv(other(2, :), 1, t, previous, 9, MPI_COMM_WORLD, requests(1), ierr)
  call same(handed(1, cancel), MPI_SUCCESS, 'MPI_Cancel')
  other(2, :) = -2
  call same(handed(1, by_wait), MPI_SUCCESS, 'MPI_Wait for what was cancelled')
  call check(all(other(2, :) == -2), 'what was cancelled has written')

  ! persistent: started in C, in Fortran, and freed while active
  call MPI_Recv_init(other(2, :), 1, t, previous, 1, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_Send_init(plate(3, :), 1, t, next, 1, MPI_COMM_WORLD, requests(2), ierr)
  do round = 1, 4
    way = merge(waitall, look_all, round <= 2)
    call clear()
    plate(3, :) = -3
    plate(3, 1:5:2) = mine + round
    if (mod(round, 2) == 1) call same(handed(2, start), MPI_SUCCESS, 'MPI_Start')
    if (mod(round, 2) == 0) call MPI_Startall(2, requests, ierr)
    call same(handed(2, way), MPI_SUCCESS, 'persistent by '//ways(way))
    call check(all(other(2, 1:5:2) == theirs + round) .and. count(other /= -1) == 3, 'persistent by '//ways(way))
    if (way == look_all) call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  end do
  call clear()
  plate(3, 1:5:2) = mine + round
  call same(handed(2, start), MPI_SUCCESS, 'MPI_Start')
  call same(handed(2, free), MPI_SUCCESS, 'freeing what is active')
  call send([rank], 3)
  call MPI_Recv(word, 1, MPI_INTEGER, previous, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call check(all(other(2, 1:5:2) == theirs + round) .and. count(other /= -1) == 3, 'persistent and freed')

  ! collectives, and a persistent one
  allocate (columns(2 * n, ranks), rows(2, n))
  line = [(100 * rank + i, i = 1, n)]
  do way = by_wait, look_some
    columns = -1
    call MPI_Iallgather(line, n, MPI_INTEGER, columns(2:2 * n:2, :), n, MPI_INTEGER, MPI_COMM_WORLD, requests(1), ierr)
    call same(handed(1, way), MPI_SUCCESS, 'MPI_Iallgather by '//ways(way))
    call gathered(0, 'MPI_Iallgather by '//ways(way))
    if (way >= look) call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
  end do
  rows(1, :) = rank + 1
  rows(2, :) = -1
  call MPI_Iallreduce(MPI_IN_PLACE, rows(1, :), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1), ierr)
  call same(handed(1, testsome), MPI_SUCCESS, 'MPI_Iallreduce')
  call check(all(rows(1, :) == ranks * (ranks + 1) / 2) .and. all(rows(2, :) == -1), 'MPI_Iallreduce in place')
  call MPI_Allgather_init(line, n, MPI_INTEGER, columns(2:2 * n:2, :), n, MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), ierr)
  do round = 1, 2
    columns = -1
    line = [(100 * rank + i, i = 1, n)] + round
    call same(handed(1, start), MPI_SUCCESS, 'MPI_Start of MPI_Allgather_init')
    call same(handed(1, by_wait), MPI_SUCCESS, 'MPI_Allgather_init')
    call gathered(round, 'MPI_Allgather_init')
  end do
  call same(handed(1, free), MPI_SUCCESS, 'freeing MPI_Allgather_init')

  ! both ways at once
  call clear()
  plate(3, :) = -3
  plate(3, 1:5:2) = mine
  call MPI_Isendrecv(plate(3, :), 1, t, next, 4, other(2, :), 1, t, previous, 4, MPI_COMM_WORLD, requests(1), ierr)
  call same(handed(1, by_wait), MPI_SUCCESS, 'MPI_Isendrecv')
  call check(all(other(2, 1:5:2) == theirs) .and. count(other /= -1) == 3, 'MPI_Isendrecv')
  call MPI_Type_free(t, ierr)
contains
  subroutine clear()
    other = -1
  end subroutine
  subroutine send(what, tag)
    integer, intent(in) :: what(:), tag
    call MPI_Send(what, size(what), MPI_INTEGER, next, tag, MPI_COMM_WORLD, ierr)
    call ok(ierr, 'MPI_Send')
  end subroutine
  subroutine came(how)
    character(len=*), intent(in) :: how
    call check(all(other(2, 1:5:2) == theirs), trim(how)//': the first receive')
    call check(all(other(2, 2:6:2) == theirs + 100), trim(how)//': the second receive')
    call same(count(other /= -1), 6, trim(how)//': what has changed')
  end subroutine
  subroutine gathered(more, how)
    integer, intent(in) :: more
    character(len=*), intent(in) :: how
    integer :: i, k
    do i = 1, ranks
      call check(all(columns(2:2 * n:2, i) == [(100 * (i - 1) + k + more, k = 1, n)]) .and. all(columns(1:2 * n:2, i) == -1), how)
    end do
  end subroutine
  integer function handed(many, way)
    integer, intent(in) :: many, way
    integer(c_int) :: numbers(many)
    numbers = NUMBER(requests(:many))
    handed = c_complete(many, numbers, int(way, c_int))
    NUMBER(requests(:many)) = numbers
  end function
end subroutine
