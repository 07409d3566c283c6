! What only mpi_f08 has: ierror may be left out, handles are types, arguments have names, statuses cross, sizes of types.
#include "forms.h"
subroutine test_modern()
  use mpi_f08
  use checks
  use, intrinsic :: iso_c_binding, only: c_ptr, c_loc, c_associated, c_int
  implicit none
  interface
    integer(c_int) function c_rank(comm) bind(C)
      import c_int
      integer(c_int), value :: comm
    end function
  end interface
  integer :: rank, ranks, ierr, size, value, old(MPI_STATUS_SIZE), source
  integer, asynchronous :: out, in
  type(MPI_Comm) :: comm, none
  type(MPI_Status) :: status, back
  type(MPI_Request) :: request
  type(MPI_Datatype) :: types(2)
  type(MPI_Message) :: message
  type(MPI_Info) :: info
  type(MPI_Errhandler) :: handler
  type(c_ptr) :: detached
  integer, target :: buffer(100)
  logical :: flag
  character(len=3) :: text

  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(comm=MPI_COMM_WORLD, size=ranks)
  call MPI_Comm_dup(newcomm=comm, comm=MPI_COMM_WORLD)
  call check(comm /= MPI_COMM_WORLD .and. comm == comm, 'the operators of handles')
  call check(comm%MPI_VAL /= MPI_COMM_WORLD%MPI_VAL, 'MPI_VAL')
  none%MPI_VAL = MPI_COMM_NULL%MPI_VAL
  call check(none == MPI_COMM_NULL, 'a handle made of its value')
  call same(c_rank(comm%MPI_VAL), rank, 'the rank that C finds with a handle of Fortran')
  types = MPI_INTEGER
  call check(types(2) == MPI_INTEGER .and. types(1) /= MPI_REAL, 'handles of datatypes')
  request = MPI_REQUEST_NULL
  message = MPI_MESSAGE_NULL
  info = MPI_INFO_NULL
  handler = MPI_ERRORS_RETURN
  call check(request == MPI_REQUEST_NULL .and. message /= MPI_MESSAGE_NO_PROC .and. info /= MPI_INFO_ENV, 'null handles')
  call check(handler /= MPI_ERRORS_ARE_FATAL .and. MPI_OP_NULL /= MPI_SUM .and. MPI_GROUP_NULL /= MPI_GROUP_EMPTY, 'handles')
  call check(MPI_WIN_NULL == MPI_WIN_NULL .and. MPI_FILE_NULL == MPI_FILE_NULL .and. MPI_SESSION_NULL == MPI_SESSION_NULL, 'more handles')

  ! without ierror the error handler still hears
  out = rank
  call MPI_Isend(out, 1, MPI_INTEGER, mod(rank + 1, ranks), 3, comm, request)
  call MPI_Recv(buf=in, count=1, datatype=MPI_INTEGER, source=MPI_ANY_SOURCE, tag=MPI_ANY_TAG, comm=comm, status=status)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call same(in, mod(rank + ranks - 1, ranks), 'what came without ierror')
  call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
  call MPI_Send(out, 1, MPI_INTEGER, ranks + 1, 0, comm)
  call MPI_Send(out, 1, MPI_INTEGER, ranks + 1, 0, comm, ierr)
  call fails(ierr, MPI_ERR_RANK, 'a rank beyond the last')

  ! statuses in both forms
  call MPI_Status_f082f(status, old, ierr)
  call ok(ierr, 'MPI_Status_f082f')
  call same(old(MPI_SOURCE), status%MPI_SOURCE, 'the source of a status as integers')
  call same(old(MPI_TAG), 3, 'the tag of a status as integers')
  call MPI_Status_f2f08(old, back, ierr)
  call same(back%MPI_TAG, 3, 'the tag of a status that went both ways')
  call MPI_Get_count(back, MPI_INTEGER, size)
  call same(size, 1, 'the count of a status that went both ways')
  call same(storage_size(status) / 32, MPI_STATUS_SIZE, 'the size of a status')

  ! buffers are told by c_ptr
  call MPI_Buffer_attach(buffer, 400)
  call MPI_Buffer_detach(detached, size)
  call check(c_associated(detached, c_loc(buffer)) .and. size == 400, 'MPI_Buffer_detach')
#if defined(KW_FOREIGN)
  call MPI_Comm_attach_buffer(comm, buffer, 400, ierr)
#else
  call MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0, ierr)
#endif
  call ok(ierr, 'MPI_Comm_attach_buffer')
  call MPI_Bsend(out, 1, MPI_INTEGER, rank, 8, comm)
  call MPI_Recv(in, 1, MPI_INTEGER, rank, 8, comm, MPI_STATUS_IGNORE)
  call MPI_Comm_detach_buffer(comm, detached, size, ierr)
  call ok(ierr, 'MPI_Comm_detach_buffer')

  call MPI_Info_create(info)
  call MPI_Info_set(info, 'key', 'a longer value')
  call MPI_Info_get(info, 'key', len(text), text, flag)
  call check(flag .and. text == 'a l', 'a value that does not fit')
  call MPI_Info_free(info)
  value = 3
  source = 0
  call MPI_Bcast(value, 1, MPI_INTEGER, source, comm)
  call MPI_Comm_free(comm)
end subroutine
