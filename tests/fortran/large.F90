! Large counts: the same names with counts of INTEGER(MPI_COUNT_KIND), in mpi_f08.
#include "forms.h"
subroutine test_large()
  use mpi_f08
  use checks
  use callback_procedures, only: combine_large
  use, intrinsic :: iso_c_binding, only: c_ptr, c_loc, c_associated
  implicit none
  integer, parameter :: n = 6, big = MPI_COUNT_KIND
  integer :: rank, ranks, next, previous, ierr, i, a(n), b(n), list(8)
  integer(MPI_COUNT_KIND) :: count, size, lb, extent, counts(8), lengths(2), integers, addresses, large_counts, datatypes
  integer(MPI_ADDRESS_KIND) :: places(8)
  integer(MPI_COUNT_KIND) :: displacements(2)
  integer :: combiner
  character :: packed(100)
  integer, target, asynchronous :: buffer(1000)
  integer :: numbers(1)
  type(c_ptr) :: detached
  type(MPI_Comm) :: comm
  type(MPI_Session) :: session
  type(MPI_Op) :: op
  type(MPI_Datatype) :: inner(1)
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  type(MPI_Datatype) :: t, u

  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  a = [(10 * rank + i, i = 1, n)]
  count = n
  call MPI_Isend(a, count, MPI_INTEGER, next, 0, MPI_COMM_WORLD, request, ierr)
  call ok(ierr, 'MPI_Isend with a large count')
  call MPI_Recv(b, count, MPI_INTEGER, previous, 0, MPI_COMM_WORLD, status, ierr)
  call MPI_Get_count(status, MPI_INTEGER, count, ierr)
  call same(count, 6_big, 'MPI_Get_count with a large count')
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call check(all(b == a + 10 * (previous - rank)), 'a message with a large count came wrong')
  call MPI_Bcast(b, int(n, big), MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  call ok(ierr, 'MPI_Bcast with a large count')
  call MPI_Allreduce(MPI_IN_PLACE, a, int(n, big), MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(all(a == [(5 * ranks * (ranks - 1) + ranks * i, i = 1, n)]), 'MPI_Allreduce with a large count')
  counts = 1
  places = [(i - 1, i = 1, 8)]
  list = -1
  call MPI_Allgatherv(rank, 1_big, MPI_INTEGER, list, counts, places, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call check(all(list(:ranks) == [(i, i = 0, ranks - 1)]), 'MPI_Allgatherv with large counts')
  call MPI_Sendrecv(a(1:5:2), 3_big, MPI_INTEGER, next, 1, b(2:6:2), 3_big, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, ierr)
  call check(all(b(2:6:2) == a(1:5:2)), 'a section with a large count')

  call MPI_Type_contiguous(3000000000_big, MPI_BYTE, t, ierr)
  call ok(ierr, 'a type of three billion bytes')
  call MPI_Type_size(t, size, ierr)
  call same(size, 3000000000_big, 'the size of a type of three billion bytes')
  call MPI_Type_size(t, i, ierr)
  call same(i, MPI_UNDEFINED, 'that size as an INTEGER')
  call MPI_Type_free(t)
  displacements = [0, 8]
  lengths = 1
  call MPI_Type_create_hindexed(2_big, lengths, displacements, MPI_INTEGER, u, ierr)
  call ok(ierr, 'MPI_Type_create_hindexed with large counts')
  call MPI_Type_get_extent(u, lb, extent, ierr)
  call same(extent, 12_big, 'MPI_Type_get_extent with a large count')
  call MPI_Type_get_envelope(u, integers, addresses, large_counts, datatypes, combiner, ierr)
  call check(ierr == MPI_SUCCESS .and. combiner == MPI_COMBINER_HINDEXED .and. datatypes == 1, 'MPI_Type_get_envelope with large counts')
  call MPI_Type_get_contents(u, integers, addresses, large_counts, datatypes, numbers, places, counts, inner, ierr)
  call check(ierr == MPI_SUCCESS .and. inner(1) == MPI_INTEGER .and. all(counts(:5) == [2_big, 1_big, 1_big, 0_big, 8_big]), &
             'MPI_Type_get_contents with large counts')
  call MPI_Type_free(u)
  size = 0
  call MPI_Pack(a, 2_big, MPI_INTEGER, packed, 100_big, size, MPI_COMM_WORLD, ierr)
  call same(size, 8_big, 'MPI_Pack with a large count')
  call MPI_Status_set_elements(status, MPI_INTEGER, 2_big**33, ierr)
  call ok(ierr, 'MPI_Status_set_elements with a large count')
  call MPI_Get_elements(status, MPI_INTEGER, count, ierr)
  call same(count, 2_big**33, 'MPI_Get_elements with a large count')
  call MPI_Op_create_c(combine_large, .true., op, ierr)
  call ok(ierr, 'MPI_Op_create_c')
  a = 1
  b = 2
  call MPI_Reduce_local(a, b, int(n, big), MPI_INTEGER, op, ierr)
  call check(ierr == MPI_SUCCESS .and. all(b == 12), 'an operator with large counts')
  call MPI_Op_free(op)

  ! buffers
  size = 4000
  call MPI_Buffer_attach(buffer, size, ierr)
  call ok(ierr, 'MPI_Buffer_attach with a large count')
  size = 0
  call MPI_Buffer_detach(detached, size, ierr)
  call check(c_associated(detached, c_loc(buffer)) .and. size == 4000, 'MPI_Buffer_detach with a large count')
  call MPI_Comm_dup(MPI_COMM_SELF, comm)
  call MPI_Comm_attach_buffer(comm, buffer, size, ierr)
  call ok(ierr, 'MPI_Comm_attach_buffer with a large count')
  size = 0
  call MPI_Comm_detach_buffer(comm, detached, size, ierr)
  call check(c_associated(detached, c_loc(buffer)) .and. size == 4000, 'MPI_Comm_detach_buffer with a large count')
  call MPI_Comm_free(comm)
  call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session)
  call MPI_Session_attach_buffer(session, buffer, size, ierr)
  call ok(ierr, 'MPI_Session_attach_buffer with a large count')
  size = 0
  call MPI_Session_detach_buffer(session, detached, size, ierr)
  call check(c_associated(detached, c_loc(buffer)) .and. size == 4000, 'MPI_Session_detach_buffer with a large count')
  call MPI_Session_finalize(session)

  call MPI_Send(a, -1_big, MPI_INTEGER, next, 0, MPI_COMM_WORLD, ierr)
  call fails(ierr, MPI_ERR_COUNT, 'a large count of -1')
  call MPI_Send(a, 2_big**40, MPI_INTEGER, ranks, 0, MPI_COMM_WORLD, ierr)
  call fails(ierr, MPI_ERR_RANK, 'a rank beyond the last with a large count')
end subroutine
