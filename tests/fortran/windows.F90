! Windows: memory of the program and of MPI (C's pointers and Cray's), every operation, every kind of synchronisation, attributes,
! names, hints, error handlers.
#include "forms.h"
module window_procedures
  USE_MPI
  use checks
  implicit none
#if defined(KW_MPIF)
  include 'mpif.h'
#endif
  integer :: heard = 0, heard_code = 0, deleted = 0
contains
  subroutine hear_window(win, code)
    HANDLE(MPI_Win) :: win
    integer :: code
    call check(win /= MPI_WIN_NULL, 'the window that an error handler is given')
    heard = heard + 1
    heard_code = code
  end subroutine

  subroutine delete_of_window(win, keyval, value, extra, ierror)
    HANDLE(MPI_Win) :: win
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: value, extra
    call check(extra == 77, 'the extra state of a delete procedure of windows')
    deleted = deleted + int(value)
    ierror = MPI_SUCCESS
  end subroutine
end module

subroutine test_windows()
  call test_what_a_window_has()
  call test_window_calls()
  call test_synchronisation()
#if !defined(KW_MPIF) && !defined(KW_FOREIGN)
  call test_window_sections()
#endif
  call test_window_memory()
  call test_dynamic_window()
end subroutine

! Attributes, group, name, hints, error handlers.
subroutine test_what_a_window_has()
  USE_MPI
  use checks
  use window_procedures, only: hear_window, delete_of_window, heard, heard_code, deleted
  implicit none
  INCLUDE_MPI
  HANDLE(MPI_Win) :: win
  HANDLE(MPI_Group) :: group
  HANDLE(MPI_Info) :: info
  HANDLE(MPI_Errhandler) :: handler, found
  integer LASTING :: memory(10)
  integer :: ierr, length, ranks, keyval
  integer(MPI_ADDRESS_KIND) :: value, extra, bytes
  logical :: flag
  character(len=MPI_MAX_OBJECT_NAME) :: name
  character(len=32) :: hint

  bytes = 40
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call ok(ierr, 'MPI_Win_create')
  call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag, ierr)
  call check(flag .and. value == 40, 'MPI_WIN_SIZE')
  call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag, ierr)
  call check(flag .and. value == 4, 'MPI_WIN_DISP_UNIT')
  call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag, ierr)
  call check(flag .and. value == MPI_WIN_FLAVOR_CREATE, 'MPI_WIN_CREATE_FLAVOR')
  call MPI_Win_get_attr(win, MPI_WIN_MODEL, value, flag, ierr)
  call check(flag .and. value == MPI_WIN_UNIFIED, 'MPI_WIN_MODEL')
  call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag, ierr)
  call check(flag .and. value /= 0, 'MPI_WIN_BASE')
  extra = 77
  call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_of_window, keyval, extra, ierr)
  call ok(ierr, 'MPI_Win_create_keyval')
  value = 5
  call MPI_Win_set_attr(win, keyval, value, ierr)
  call ok(ierr, 'MPI_Win_set_attr')
  value = 0
  call MPI_Win_get_attr(win, keyval, value, flag, ierr)
  call check(flag .and. value == 5, 'MPI_Win_get_attr')
  call MPI_Win_delete_attr(win, keyval, ierr)
  call check(ierr == MPI_SUCCESS .and. deleted == 5, 'MPI_Win_delete_attr')
  call MPI_Win_free_keyval(keyval, ierr)
  call MPI_Win_get_group(win, group, ierr)
  call MPI_Group_size(group, length, ierr)
  call same(length, ranks, 'MPI_Win_get_group')
  call MPI_Group_free(group, ierr)
  call MPI_Win_set_name(win, 'a window', ierr)
  call MPI_Win_get_name(win, name, length, ierr)
  call check(name == 'a window' .and. length == 8, 'MPI_Win_set_name')
  call MPI_Win_get_info(win, info, ierr)
  call MPI_Info_get(info, 'no_locks', 32, hint, flag, ierr)
  call check(flag .and. hint == 'false', 'MPI_Win_get_info')
  call MPI_Win_set_info(win, info, ierr)
  call ok(ierr, 'MPI_Win_set_info')
  call MPI_Info_free(info, ierr)
  call MPI_Win_create_errhandler(hear_window, handler, ierr)
  call MPI_Win_set_errhandler(win, handler, ierr)
  call MPI_Win_get_errhandler(win, found, ierr)
  call check(found == handler, 'MPI_Win_get_errhandler')
  call MPI_Errhandler_free(found, ierr)
  call MPI_Win_unlock(0, win, ierr)
  call fails(ierr, MPI_ERR_RMA_SYNC, 'an unlock without a lock')
  call fails(heard_code, MPI_ERR_RMA_SYNC, 'what the handler of a window was told')
  call MPI_Win_call_errhandler(win, MPI_ERR_OTHER, ierr)
  call same(heard, 2, 'the calls of the handler of a window')
  call MPI_Errhandler_free(handler, ierr)
  call MPI_Win_free(win, ierr)
  call ok(ierr, 'MPI_Win_free')
  call check(win == MPI_WIN_NULL, 'a freed window is not null')
end subroutine

! Every operation once, in each form.
subroutine test_window_calls()
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 10
  HANDLE(MPI_Win) :: win
  HANDLE(MPI_Request) :: request
  integer LASTING :: memory(n), values(n), got(n)
  integer LASTING :: one, old, wanted
  integer :: ierr, i, round, rank, ranks, next, before
  integer(MPI_ADDRESS_KIND) :: zero, bytes

  zero = 0
  round = 0
  bytes = 4 * n
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call ok(ierr, 'MPI_Win_create')
  call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN, ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
#define HOWMANY n
#include "window_calls.h"
#if defined(KW_F08) && !defined(KW_FOREIGN)
#undef HOWMANY
#define HOWMANY int(n, MPI_COUNT_KIND)
#include "window_calls.h"
#endif
  call begin()
  one = 100 + rank
  call MPI_Fetch_and_op(one, old, MPI_INTEGER, next, zero, MPI_REPLACE, win, ierr)
  call ok(ierr, 'MPI_Fetch_and_op')
  call MPI_Win_unlock_all(win, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call same(old, initial(next, 1), 'the result of MPI_Fetch_and_op')
  call same(memory(1), 100 + before, 'what MPI_Fetch_and_op leaves')
  call begin()
  one = 7
  wanted = initial(next, 1)
  call MPI_Compare_and_swap(one, wanted, old, MPI_INTEGER, next, zero, win, ierr)
  call ok(ierr, 'MPI_Compare_and_swap')
  call MPI_Win_unlock_all(win, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call same(old, initial(next, 1), 'the result of MPI_Compare_and_swap')
  call same(memory(1), 7, 'what MPI_Compare_and_swap leaves')
  call MPI_Win_free(win, ierr)
  call ok(ierr, 'MPI_Win_free')
contains
  integer function initial(of, place)
    integer, intent(in) :: of, place
    initial = 1000 * round + 100 * of + place
  end function

  subroutine begin()
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    round = round + 1
    memory = [(initial(rank, i), i = 1, n)]
    values = [(-initial(rank, i), i = 1, n)]
    got = 0
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Win_lock_all(0, win, ierr)
    call ok(ierr, 'MPI_Win_lock_all')
  end subroutine

  subroutine wrote(what, times)
    character(len=*), intent(in) :: what
    integer, intent(in) :: times
    call ok(ierr, what)
    call MPI_Win_unlock_all(win, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call check(all(memory == [(times * initial(rank, i) - initial(before, i), i = 1, n)]), what//' leaves something else')
  end subroutine

  subroutine came(what)
    character(len=*), intent(in) :: what
    call ok(ierr, what)
    call MPI_Win_unlock_all(win, ierr)
    call check(all(got == [(initial(next, i), i = 1, n)]), what//' gives something else')
  end subroutine
end subroutine

subroutine test_synchronisation()
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 10
  HANDLE(MPI_Win) :: win
  HANDLE(MPI_Group) :: all_ranks, from, to
  integer LASTING :: memory(n), value(1)
  integer :: ierr, rank, ranks, next, before, list(1)
  integer(MPI_ADDRESS_KIND) :: place, bytes
  logical :: flag

  place = 2
  bytes = 4 * n
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call ok(ierr, 'MPI_Win_create')
  call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN, ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  call MPI_Win_fence(MPI_MODE_NOPRECEDE, win, ierr)
  call ok(ierr, 'MPI_Win_fence')
  value = 20 + rank
  call MPI_Put(value, 1, MPI_INTEGER, next, place, 1, MPI_INTEGER, win, ierr)
  call MPI_Win_fence(MPI_MODE_NOSTORE + MPI_MODE_NOPUT + MPI_MODE_NOSUCCEED, win, ierr)
  call same(memory(3), 20 + before, 'what a put leaves after a fence')

  call MPI_Comm_group(MPI_COMM_WORLD, all_ranks, ierr)
  list = before
  call MPI_Group_incl(all_ranks, 1, list, from, ierr)
  list = next
  call MPI_Group_incl(all_ranks, 1, list, to, ierr)
  call MPI_Win_post(from, 0, win, ierr)
  call ok(ierr, 'MPI_Win_post')
  call MPI_Win_start(to, 0, win, ierr)
  call ok(ierr, 'MPI_Win_start')
  value = 30 + rank
  call MPI_Put(value, 1, MPI_INTEGER, next, place, 1, MPI_INTEGER, win, ierr)
  call MPI_Win_complete(win, ierr)
  call ok(ierr, 'MPI_Win_complete')
  call MPI_Win_wait(win, ierr)
  call ok(ierr, 'MPI_Win_wait')
  call same(memory(3), 30 + before, 'what a put leaves after MPI_Win_wait')
  call MPI_Win_post(from, MPI_MODE_NOSTORE, win, ierr)
  call MPI_Win_start(to, 0, win, ierr)
  value = 40 + rank
  call MPI_Put(value, 1, MPI_INTEGER, next, place, 1, MPI_INTEGER, win, ierr)
  call MPI_Win_complete(win, ierr)
  flag = .false.
  do while (.not. flag)
    call MPI_Win_test(win, flag, ierr)
    call ok(ierr, 'MPI_Win_test')
    if (ierr /= MPI_SUCCESS) exit
  end do
  call same(memory(3), 40 + before, 'what a put leaves after MPI_Win_test')
  call MPI_Group_free(from, ierr)
  call MPI_Group_free(to, ierr)
  call MPI_Group_free(all_ranks, ierr)

  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win, ierr)
  call ok(ierr, 'MPI_Win_lock')
  value = 50 + rank
  call MPI_Put(value, 1, MPI_INTEGER, next, place, 1, MPI_INTEGER, win, ierr)
  call MPI_Win_flush_local(next, win, ierr)
  call ok(ierr, 'MPI_Win_flush_local')
  call MPI_Win_flush_local_all(win, ierr)
  call ok(ierr, 'MPI_Win_flush_local_all')
  call MPI_Win_flush_all(win, ierr)
  call ok(ierr, 'MPI_Win_flush_all')
  value = 0
  call MPI_Get(value, 1, MPI_INTEGER, next, place, 1, MPI_INTEGER, win, ierr)
  call MPI_Win_flush(next, win, ierr)
  call same(value(1), 50 + rank, 'MPI_Win_flush')
  call MPI_Win_sync(win, ierr)
  call ok(ierr, 'MPI_Win_sync')
  call MPI_Win_unlock(next, win, ierr)
  call ok(ierr, 'MPI_Win_unlock')
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call same(memory(3), 50 + before, 'what a put leaves after an unlock')
  call MPI_Win_free(win, ierr)
  call ok(ierr, 'MPI_Win_free')
end subroutine

! Memory that MPI allocates.
subroutine test_window_memory()
  USE_MPI
  use checks
  use, intrinsic :: iso_c_binding
  implicit none
  INCLUDE_MPI
  integer :: ierr, rank, ranks, unit, next, before
  integer(MPI_ADDRESS_KIND) :: bytes, place, size
  integer, pointer :: words(:)
  integer LASTING :: value(1)
  HANDLE(MPI_Win) :: win
#if !defined(KW_MPIF)
  type(c_ptr) :: base, other
#endif
#if !defined(KW_F08)
  real(8) :: numbers(5)
  pointer (address, numbers)
  integer(MPI_ADDRESS_KIND) :: found
#endif

  place = 0
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  bytes = 40
#if !defined(KW_MPIF)
  call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierr)
  call ok(ierr, 'MPI_Win_allocate')
  call c_f_pointer(base, words, [10])
  words = 1
  call MPI_Win_fence(0, win, ierr)
  value = 60 + rank
  call MPI_Put(value, 1, MPI_INTEGER, next, place, 1, MPI_INTEGER, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call check(words(1) == 60 + before .and. words(2) == 1, 'memory of MPI_Win_allocate')
  call MPI_Win_free(win, ierr)
  call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, MPI_COMM_SELF, base, win, ierr)
  call ok(ierr, 'MPI_Win_allocate_shared')
  call MPI_Win_shared_query(win, 0, size, unit, other, ierr)
  call check(size == 40 .and. unit == 4 .and. c_associated(base, other), 'MPI_Win_shared_query')
  call MPI_Win_free(win, ierr)
#endif
#if !defined(KW_F08)
  call MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, address, win, ierr)
  call ok(ierr, 'MPI_Win_allocate with a Cray pointer')
  numbers = 1.5
  call MPI_Win_fence(0, win, ierr)
  value = 70 + rank
  place = 4
  call MPI_Put(value, 1, MPI_INTEGER, next, place, 1, MPI_INTEGER, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call check(all(numbers(:4) == 1.5) .and. transfer(numbers(5), 0) == 70 + before, 'memory of MPI_Win_allocate by a Cray pointer')
  call MPI_Win_free(win, ierr)
  call MPI_Win_allocate_shared(bytes, 8, MPI_INFO_NULL, MPI_COMM_SELF, address, win, ierr)
  call ok(ierr, 'MPI_Win_allocate_shared with a Cray pointer')
  numbers = 2.5
  call MPI_Win_shared_query(win, 0, size, unit, found, ierr)
  call check(size == 40 .and. unit == 8 .and. found == address, 'MPI_Win_shared_query with an address')
  call MPI_Win_free(win, ierr)
#endif
#if defined(KW_F08) && !defined(KW_FOREIGN)
  call test_large_units()
#endif
end subroutine

#if defined(KW_F08) && !defined(KW_FOREIGN)
! Displacement units of the kind of addresses.
subroutine test_large_units()
  use mpi_f08
  use checks
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: ierr
  integer, asynchronous :: memory(4)
  integer(MPI_ADDRESS_KIND) :: bytes, unit, size
  type(MPI_Win) :: win
  type(c_ptr) :: base, other
  bytes = 16
  unit = 4
  call MPI_Win_create(memory, bytes, unit, MPI_INFO_NULL, MPI_COMM_SELF, win, ierr)
  call ok(ierr, 'MPI_Win_create with a large unit')
  call MPI_Win_free(win, ierr)
  call MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, MPI_COMM_SELF, base, win, ierr)
  call ok(ierr, 'MPI_Win_allocate with a large unit')
  call MPI_Win_free(win, ierr)
  call MPI_Win_allocate_shared(bytes, unit, MPI_INFO_NULL, MPI_COMM_SELF, base, win, ierr)
  call ok(ierr, 'MPI_Win_allocate_shared with a large unit')
  unit = 0
  call MPI_Win_shared_query(win, 0, size, unit, other, ierr)
  call check(unit == 4 .and. size == 16 .and. c_associated(base, other), 'MPI_Win_shared_query with a large unit')
  call MPI_Win_free(win, ierr)
end subroutine
#endif

subroutine test_dynamic_window()
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 10
  integer LASTING :: memory(n), value(1)
  integer :: ierr, rank, ranks, next, before
  integer(MPI_ADDRESS_KIND) :: bytes, here_it_is(1), far
  integer(MPI_ADDRESS_KIND), allocatable :: places(:)
  HANDLE(MPI_Win) :: win

  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  allocate (places(0:ranks - 1))
  memory = 0
  bytes = 4 * n
  call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call ok(ierr, 'MPI_Win_create_dynamic')
  call MPI_Win_attach(win, memory, bytes, ierr)
  call ok(ierr, 'MPI_Win_attach')
  call MPI_Get_address(memory, here_it_is(1), ierr)
  call MPI_Allgather(here_it_is, 1, MPI_AINT, places, 1, MPI_AINT, MPI_COMM_WORLD, ierr)
  call MPI_Win_fence(0, win, ierr)
  value = 80 + rank
  far = 4
  far = MPI_Aint_add(places(next), far)
  call MPI_Put(value, 1, MPI_INTEGER, next, far, 1, MPI_INTEGER, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call check(memory(1) == 0 .and. memory(2) == 80 + before, 'what a put leaves in attached memory')
  call MPI_Win_detach(win, memory, ierr)
  call ok(ierr, 'MPI_Win_detach')
  call MPI_Win_free(win, ierr)
end subroutine

#if !defined(KW_MPIF) && !defined(KW_FOREIGN)
! Array sections that are not contiguous: they are read and written until the epoch ends.
subroutine test_window_sections()
  USE_MPI
  use checks
  implicit none
  integer, parameter :: n = 10
  HANDLE(MPI_Win) :: win
  HANDLE(MPI_Request) :: request
  integer, asynchronous :: memory(n), plate(n, n), other(n, n)
  character(len=7), asynchronous :: words(n)
  integer :: ierr, i, rank, ranks, next, before
  integer(MPI_ADDRESS_KIND) :: zero, bytes

  zero = 0
  bytes = 4 * n
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call ok(ierr, 'MPI_Win_create')
  call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN, ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  plate = reshape([(1000 * rank + i, i = 1, n * n)], [n, n])
  other = -1
  call MPI_Win_fence(0, win, ierr)
  call MPI_Put(plate(3, :), n, MPI_INTEGER, next, zero, n, MPI_INTEGER, win, ierr)
  call ok(ierr, 'a put of a row')
  call MPI_Win_fence(0, win, ierr)
  call check(all(memory == [(1000 * before + 3 + n * (i - 1), i = 1, n)]), 'what a put of a row leaves')
  call MPI_Get(other(7, :), n, MPI_INTEGER, next, zero, n, MPI_INTEGER, win, ierr)
  call ok(ierr, 'a get of a row')
  call MPI_Win_fence(0, win, ierr)
  call check(all(other(7, :) == plate(3, :)) .and. count(other /= -1) == n, 'what a get of a row gives')
  call MPI_Accumulate(plate(::2, 1), n / 2, MPI_INTEGER, next, zero, n / 2, MPI_INTEGER, MPI_REPLACE, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call check(all(memory(:n / 2) == [(1000 * before + 2 * i - 1, i = 1, n / 2)]), 'an accumulate of a section')
  other = -1
  call MPI_Win_fence(0, win, ierr)
  call MPI_Get_accumulate(plate(2, :), n, MPI_INTEGER, other(4, :), n, MPI_INTEGER, next, zero, n, MPI_INTEGER, MPI_REPLACE, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call check(all(memory == [(1000 * before + 2 + n * (i - 1), i = 1, n)]), 'what a replacement by a row leaves')
  call check(all(other(4, :n / 2) == plate(::2, 1)) .and. count(other /= -1) == n, 'what was there before')
  call MPI_Win_fence(MPI_MODE_NOSUCCEED, win, ierr)
  call MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win, ierr)
  other = -1
  call MPI_Rget(other(::2, 9), n / 2, MPI_INTEGER, next, zero, n / 2, MPI_INTEGER, win, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call check(all(other(::2, 9) == plate(2, :n / 2)) .and. count(other /= -1) == n / 2, 'a get with a request of a section')
  ! elements that no datatype of the call fits
  words = 'seven..'
  call MPI_Put(words(::2), 7, MPI_INTEGER, next, zero, 7, MPI_INTEGER, win, ierr)
  call fails(ierr, MPI_ERR_BUFFER, 'a put of a section that had to be copied')
  call MPI_Win_unlock(next, win, ierr)
  call MPI_Win_free(win, ierr)
  call ok(ierr, 'MPI_Win_free')
end subroutine
#endif
