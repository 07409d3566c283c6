! Procedures of the program that MPI calls: operators, error handlers, generalized requests.
#include "forms.h"
module callback_procedures
  USE_MPI
  use checks
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
#if defined(KW_MPIF)
  include 'mpif.h'
#endif
  integer :: handled = 0, seen_code = 0, freed = 0, cancelled = -1, op_calls = 0
contains
  ! a and b become (a + b, a * b), which is not commutative in the second half of the pair
#if defined(KW_F08)
  subroutine combine(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:, :), b(:, :)
    call c_f_pointer(invec, a, [2, len])
    call c_f_pointer(inoutvec, b, [2, len])
#else
  subroutine combine(a, b, len, datatype)
    integer :: len, datatype
    integer :: a(2, len), b(2, len)
#endif
    op_calls = op_calls + 1
    call check(datatype /= MPI_INTEGER .and. datatype /= MPI_DATATYPE_NULL, 'the datatype that an operator is given')
    b(1, :) = a(1, :) + b(1, :)
    b(2, :) = a(2, :) * 2 + b(2, :)
  end subroutine

#if defined(KW_F08)
  subroutine combine_large(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    call check(datatype == MPI_INTEGER, 'the datatype that an operator with large counts is given')
    b = 10 * a + b
  end subroutine
#endif

  subroutine handle_comm(comm, code)
    HANDLE(MPI_Comm) :: comm
    integer :: code
    handled = handled + 1
    seen_code = code
    call check(comm /= MPI_COMM_NULL, 'the communicator that an error handler is given')
  end subroutine

  subroutine handle_session(session, code)
    HANDLE(MPI_Session) :: session
    integer :: code
    handled = handled + 100
    seen_code = code
  end subroutine

  subroutine handle_file(file, code)
    HANDLE(MPI_File) :: file
    integer :: code
    handled = handled + 1
  end subroutine

  subroutine handle_win(win, code)
    HANDLE(MPI_Win) :: win
    integer :: code
    handled = handled + 1
  end subroutine

  subroutine copy_win(win, keyval, extra, value_in, value_out, flag, ierror)
    HANDLE(MPI_Win) :: win
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra, value_in, value_out
    logical :: flag
    flag = .false.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete_win(win, keyval, value, extra, ierror)
    HANDLE(MPI_Win) :: win
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: value, extra
    ierror = MPI_SUCCESS
  end subroutine

  subroutine query(extra, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    A_STATUS(status)
    integer :: ierror
    call check(extra == -5 .or. extra == 9, 'the extra state of a query')
    call MPI_Status_set_elements(status, MPI_INTEGER, 6, ierror)
    call MPI_Status_set_cancelled(status, .false., ierror)
    SOURCE_OF(status) = 33
    ierror = MPI_SUCCESS
  end subroutine

  subroutine release(extra, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: ierror
    freed = freed + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine count_down(extra, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: ierror
    freed = int(extra)
    extra = extra - 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancel(extra, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierror
    cancelled = merge(1, 0, complete)
    ierror = MPI_SUCCESS
  end subroutine
end module

subroutine test_callbacks()
  USE_MPI
  use checks
  use callback_procedures, only: combine, handle_comm, handle_session, query, release, cancel, handled, seen_code, freed, &
                                 cancelled, op_calls, count_down
  implicit none
  INCLUDE_MPI
  integer :: ierr, rank, ranks, pairs(2, 3), got(2, 3), i, count
  logical :: flag, commutes
  integer(MPI_ADDRESS_KIND), volatile :: extra
  HANDLE(MPI_Op) :: op
  HANDLE(MPI_Datatype) :: pair
  HANDLE(MPI_Errhandler) :: handler, found
  HANDLE(MPI_Comm) :: comm
  HANDLE(MPI_Session) :: session
  HANDLE(MPI_Request) :: request
  A_STATUS(status)

  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)

  ! an operator in the order of the ranks
  call MPI_Type_contiguous(2, MPI_INTEGER, pair, ierr)
  call MPI_Type_commit(pair, ierr)
  call MPI_Op_create(combine, .false., op, ierr)
  call ok(ierr, 'MPI_Op_create')
  call MPI_Op_commutative(op, commutes, ierr)
  call check(.not. commutes, 'MPI_Op_commutative')
  pairs(1, :) = [(rank + i, i = 1, 3)]
  pairs(2, :) = rank + 1
  call MPI_Allreduce(pairs, got, 3, pair, op, MPI_COMM_WORLD, ierr)
  call ok(ierr, 'MPI_Allreduce with an operator of ours')
  call check(all(got(1, :) == [(ranks * i + ranks * (ranks - 1) / 2, i = 1, 3)]), 'the sum of an operator of ours')
  if (ranks == 2) call check(all(got(2, :) == 4), 'the order in which an operator is applied')
  got(1, :) = 1
  got(2, :) = 1
  op_calls = 0
  call MPI_Reduce_local(pairs, got, 3, pair, op, ierr)
  call check(op_calls == 1 .and. all(got(2, :) == 2 * (rank + 1) + 1), 'MPI_Reduce_local with an operator of ours')
  call MPI_Op_free(op, ierr)
  call check(op == MPI_OP_NULL, 'a freed operator is not null')
  call MPI_Op_create(combine, .true., op, ierr)
  call MPI_Op_commutative(op, commutes, ierr)
  call check(commutes, 'MPI_Op_commutative of a commutative one')
  call MPI_Op_free(op, ierr)
  call MPI_Type_free(pair, ierr)
  call MPI_Op_free(op, ierr)
  call fails(ierr, MPI_ERR_OP, 'freeing no operator')

  ! error handlers
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
  call MPI_Comm_create_errhandler(handle_comm, handler, ierr)
  call ok(ierr, 'MPI_Comm_create_errhandler')
  call MPI_Comm_set_errhandler(comm, handler, ierr)
  call MPI_Comm_get_errhandler(comm, found, ierr)
  call check(found == handler, 'MPI_Comm_get_errhandler')
  call MPI_Errhandler_free(found, ierr)
  call check(found == MPI_ERRHANDLER_NULL, 'a freed error handler is not null')
  call MPI_Send(rank, 1, MPI_INTEGER, ranks + 5, 0, comm, ierr)
  call fails(ierr, MPI_ERR_RANK, 'a call whose error handler returns')
  call same(handled, 1, 'the calls of an error handler')
  call fails(seen_code, MPI_ERR_RANK, 'what the handler was told')
  call MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER, ierr)
  call ok(ierr, 'MPI_Comm_call_errhandler')
  call same(handled, 2, 'the calls of an error handler with that by the program')
  call same(seen_code, MPI_ERR_OTHER, 'the code of a handler called by the program')
  call MPI_Errhandler_free(handler, ierr)
  call MPI_Comm_free(comm, ierr)
  call MPI_Session_create_errhandler(handle_session, handler, ierr)
  call MPI_Session_init(MPI_INFO_NULL, handler, session, ierr)
  call ok(ierr, 'MPI_Session_init with a handler')
  call MPI_Session_call_errhandler(session, MPI_ERR_ARG, ierr)
  call same(handled, 102, 'the calls of the handler of a session')
  call MPI_Session_finalize(session, ierr)
  call MPI_Errhandler_free(handler, ierr)

  ! generalized requests
  extra = -5
  call MPI_Grequest_start(query, release, cancel, extra, request, ierr)
  call ok(ierr, 'MPI_Grequest_start')
  call MPI_Test(request, flag, status, ierr)
  call check(.not. flag, 'a generalized request has ended by itself')
  call MPI_Grequest_complete(request, ierr)
  call ok(ierr, 'MPI_Grequest_complete')
  call MPI_Wait(request, status, ierr)
  call ok(ierr, 'MPI_Wait for a generalized request')
  call MPI_Get_count(status, MPI_INTEGER, count, ierr)
  call same(count, 6, 'the count that a query has set')
  call same(SOURCE_OF(status), 33, 'the source that a query has set')
  call same(freed, 1, 'the calls of a free procedure')
  call MPI_Grequest_start(query, release, cancel, extra, request, ierr)
  call MPI_Cancel(request, ierr)
  call same(cancelled, 0, 'whether the request was complete when it was cancelled')
  call MPI_Grequest_complete(request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call same(freed, 2, 'the calls of a free procedure after a cancelled one')

  ! they see the program's own variable as it is when they are called, and may change it
  extra = -5
  call MPI_Grequest_start(query, count_down, cancel, extra, request, ierr)
  extra = 9
  call MPI_Grequest_complete(request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call same(freed, 9, 'what a free procedure has seen of a changed state')
  call same(int(extra), 8, 'the state that a free procedure has changed')
end subroutine
