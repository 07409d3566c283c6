! Calls with fitting arguments of what no other chapter calls: buffers of communicators and sessions, statuses of several requests,
! large counts under their old names, error handlers without a window or a file, and what the library was told of the compiler.
#include "forms.h"
subroutine test_rest()
  USE_MPI
  use checks
  use callback_procedures, only: handle_comm, handle_file, handle_session, handle_win, copy_win, delete_win
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
  INCLUDE_MPI
  integer :: ierr, rank, ranks, keyval, length, n, values(2), indices(2)
  integer LASTING :: buffer(1000), x(2)
  logical :: flag
  character(len=MPI_MAX_OBJECT_NAME) :: name
  integer(MPI_COUNT_KIND) :: lb, extent, elements
  integer(MPI_ADDRESS_KIND) :: extra
#if defined(KW_F08)
  type(c_ptr) :: detached
#else
  integer(MPI_ADDRESS_KIND) :: detached
#endif
#if defined(KW_MPIF)
  integer(MPI_ADDRESS_KIND) :: address
  type(c_ptr) :: place
  integer, pointer :: words(:)
#endif
  HANDLE(MPI_Info) :: info
  HANDLE(MPI_Comm) :: comm, parent
  HANDLE(MPI_Group) :: world, mine, theirs
  HANDLE(MPI_Request) :: request, requests(2)
  HANDLE(MPI_Session) :: session
  HANDLE(MPI_Errhandler) :: handler, found
  HANDLE(MPI_Datatype) :: pair
  A_STATUS(status)
  STATUSES(statuses, 2)

  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)

  ! buffers
  call MPI_Buffer_iflush(request, ierr)
  call ok(ierr, 'MPI_Buffer_iflush')
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPI_Comm_dup(MPI_COMM_SELF, comm, ierr)
  call MPI_Comm_attach_buffer(comm, buffer, 4000, ierr)
  call ok(ierr, 'MPI_Comm_attach_buffer')
  call MPI_Bsend([7], 1, MPI_INTEGER, 0, 0, comm, ierr)
  call ok(ierr, 'MPI_Bsend by a communicator''s buffer')
  call MPI_Comm_iflush_buffer(comm, request, ierr)
  call ok(ierr, 'MPI_Comm_iflush_buffer')
  call MPI_Recv(x, 1, MPI_INTEGER, 0, 0, comm, MPI_STATUS_IGNORE, ierr)
  call same(x(1), 7, 'what came from a communicator''s buffer')
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPI_Comm_flush_buffer(comm, ierr)
  call ok(ierr, 'MPI_Comm_flush_buffer')
  call MPI_Comm_detach_buffer(comm, detached, length, ierr)
  call same(length, 4000, 'the size of a communicator''s buffer')
  call MPI_Comm_disconnect(comm, ierr)
  call ok(ierr, 'MPI_Comm_disconnect')
  call check(comm == MPI_COMM_NULL, 'a communicator that is disconnected is not null')

  ! sessions
  call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session, ierr)
  call MPI_Session_attach_buffer(session, buffer, 4000, ierr)
  call ok(ierr, 'MPI_Session_attach_buffer')
  call MPI_Session_iflush_buffer(session, request, ierr)
  call ok(ierr, 'MPI_Session_iflush_buffer')
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPI_Session_flush_buffer(session, ierr)
  call ok(ierr, 'MPI_Session_flush_buffer')
  call MPI_Session_detach_buffer(session, detached, length, ierr)
  call same(length, 4000, 'the size of a session''s buffer')
  call MPI_Session_get_info(session, info, ierr)
  call ok(ierr, 'MPI_Session_get_info')
  call MPI_Info_free(info, ierr)
  call MPI_Session_get_pset_info(session, 'mpi://WORLD', info, ierr)
  call ok(ierr, 'MPI_Session_get_pset_info')
  name = ' '
  call MPI_Info_get(info, 'mpi_size', 8, name, flag, ierr)
  read (name, *) n
  call same(n, ranks, 'the size of mpi://WORLD')
  call MPI_Info_free(info, ierr)
  call MPI_Session_create_errhandler(handle_session, handler, ierr)
  call MPI_Session_set_errhandler(session, handler, ierr)
  call ok(ierr, 'MPI_Session_set_errhandler')
  call MPI_Session_get_errhandler(session, found, ierr)
  call check(found == handler, 'MPI_Session_get_errhandler finds another one')
  call MPI_Errhandler_free(handler, ierr)
  call MPI_Errhandler_free(found, ierr)
  call MPI_Session_finalize(session, ierr)

  ! communicators
  call MPI_Comm_get_parent(parent, ierr)
  call ok(ierr, 'MPI_Comm_get_parent')
  call check(parent == MPI_COMM_NULL, 'a parent that nobody has')
  call MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, comm, request, ierr)
  call ok(ierr, 'MPI_Comm_idup_with_info')
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPI_Comm_compare(comm, MPI_COMM_WORLD, n, ierr)
  call same(n, MPI_CONGRUENT, 'what MPI_Comm_idup_with_info made')
  call MPI_Comm_free(comm, ierr)
  call MPI_Comm_group(MPI_COMM_WORLD, world, ierr)
  call MPI_Group_incl(world, 1, [0], mine, ierr)
  call MPI_Group_excl(world, 1, [0], theirs, ierr)
  if (rank == 0) then
    call MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, 'rest', MPI_INFO_NULL, MPI_ERRORS_RETURN, comm, ierr)
  else
    call MPI_Intercomm_create_from_groups(theirs, 0, mine, 0, 'rest', MPI_INFO_NULL, MPI_ERRORS_RETURN, comm, ierr)
  end if
  call ok(ierr, 'MPI_Intercomm_create_from_groups')
  call MPI_Comm_remote_size(comm, n, ierr)
  call same(n, merge(ranks - 1, 1, rank == 0), 'the remote size of an intercommunicator of groups')
  call MPI_Comm_free(comm, ierr)
  call MPI_Group_free(mine, ierr)
  call MPI_Group_free(theirs, ierr)
  call MPI_Group_free(world, ierr)
  call MPI_Get_hw_resource_info(info, ierr)
  call ok(ierr, 'MPI_Get_hw_resource_info')
  call MPI_Info_free(info, ierr)

  ! statuses of several requests, which stay
  call MPI_Irecv(x(1), 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, requests(1), ierr)
  call MPI_Irecv(x(2), 1, MPI_INTEGER, 0, 2, MPI_COMM_SELF, requests(2), ierr)
  call MPI_Send([8], 1, MPI_INTEGER, 0, 2, MPI_COMM_SELF, ierr)
  call MPI_Request_get_status_all(2, requests, flag, statuses, ierr)
  call check(ierr == MPI_SUCCESS .and. .not. flag, 'MPI_Request_get_status_all of one of two')
  flag = .false.
  do while (.not. flag)
    call MPI_Request_get_status_any(2, requests, n, flag, status, ierr)
  end do
  call check(ierr == MPI_SUCCESS .and. n == 2 .and. TAG_OF(status) == 2, 'MPI_Request_get_status_any')
  call MPI_Request_get_status_some(2, requests, n, indices, statuses, ierr)
  call check(ierr == MPI_SUCCESS .and. n == 1 .and. indices(1) == 2 .and. TAG_AT(statuses, 1) == 2, 'MPI_Request_get_status_some')
  call MPI_Send([9], 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, ierr)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  call check(all(x == [9, 8]), 'two messages to this process')

  ! datatypes
  call MPI_Type_get_extent_x(MPI_INTEGER, lb, extent, ierr)
  call check(ierr == MPI_SUCCESS .and. lb == 0 .and. extent == 4, 'MPI_Type_get_extent_x')
  call MPI_Type_get_true_extent_x(MPI_INTEGER, lb, extent, ierr)
  call check(ierr == MPI_SUCCESS .and. lb == 0 .and. extent == 4, 'MPI_Type_get_true_extent_x')
  elements = 5
  call MPI_Status_set_elements_x(status, MPI_INTEGER, elements, ierr)
  call ok(ierr, 'MPI_Status_set_elements_x')
  elements = 0
  call MPI_Get_elements_x(status, MPI_INTEGER, elements, ierr)
  call check(ierr == MPI_SUCCESS .and. elements == 5, 'MPI_Get_elements_x')
  call MPI_Type_get_value_index(MPI_DOUBLE_PRECISION, MPI_INTEGER, pair, ierr)
  call ok(ierr, 'MPI_Type_get_value_index')

#if defined(KW_MPIF)
  ! memory (the modules' is in environment.F90)
  address = 400
  call MPI_Alloc_mem(address, MPI_INFO_NULL, extra, ierr)
  call ok(ierr, 'MPI_Alloc_mem')
  place = transfer(extra, place)
  call c_f_pointer(place, words, [100])
  words = 5
  call check(sum(words) == 500, 'memory of MPI_Alloc_mem')
  call MPI_Free_mem(words, ierr)
  call ok(ierr, 'MPI_Free_mem')
#endif

  ! error handlers and keys of what there is none of
  call MPI_Win_create_errhandler(handle_win, handler, ierr)
  call ok(ierr, 'MPI_Win_create_errhandler')
  call MPI_Errhandler_free(handler, ierr)
  call MPI_File_create_errhandler(handle_file, handler, ierr)
  call ok(ierr, 'MPI_File_create_errhandler')
  call MPI_File_set_errhandler(MPI_FILE_NULL, handler, ierr)
  call ok(ierr, 'MPI_File_set_errhandler for files to come')
  call MPI_File_get_errhandler(MPI_FILE_NULL, found, ierr)
  call check(ierr == MPI_SUCCESS .and. found == handler, 'MPI_File_get_errhandler for files to come')
  call MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_FILE, ierr)
  call ok(ierr, 'MPI_File_call_errhandler')
  call MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN, ierr)
  call MPI_Errhandler_free(found, ierr)
  call MPI_Errhandler_free(handler, ierr)
  extra = 3
  call MPI_Win_create_keyval(copy_win, delete_win, keyval, extra, ierr)
  call ok(ierr, 'MPI_Win_create_keyval')
  call MPI_Win_free_keyval(keyval, ierr)
  call ok(ierr, 'MPI_Win_free_keyval')
  call same(keyval, MPI_KEYVAL_INVALID, 'a key that is free')
  call MPI_Win_get_name(MPI_WIN_NULL, name, length, ierr)
  call check(ierr == MPI_SUCCESS .and. name == 'MPI_WIN_NULL', 'the name of no window is '//name)

  ! MPI hears once what is other in the compiler than it thought: from the library or, where nothing was, from here
  call MPI_Abi_get_fortran_info(info, ierr)
  call MPI_Abi_set_fortran_info(info, ierr)
  call MPI_Abi_set_fortran_info(info, ierr)
#if !defined(KW_FOREIGN)
  call fails(ierr, MPI_ERR_ABI, 'MPI_Abi_set_fortran_info when all is said')
#endif
  call MPI_Info_free(info, ierr)
end subroutine
