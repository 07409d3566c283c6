! Point-to-point communication: every mode of sending, probes, matched probes, buffers, sendrecv, wrong arguments.
#include "forms.h"
subroutine test_point()
  USE_MPI
  use checks
  use, intrinsic :: iso_c_binding, only: c_ptr
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 5
  integer :: rank, ranks, next, previous, mode, count, ierr, place, size
  integer LASTING :: out(n), in(n), attached(400)
  integer :: detached_size
  double precision :: real_out, real_in
  logical :: flag
  HANDLE(MPI_Request) :: request, requests(2)
  HANDLE(MPI_Message) :: message
  A_STATUS(status)
  character(len=12) :: text
#if defined(KW_F08)
  type(c_ptr) :: detached
#else
  integer(MPI_ADDRESS_KIND) :: detached
#endif

  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call ok(ierr, 'MPI_Comm_rank')
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  out = [(rank * 100 + place, place = 1, n)]
  call MPI_Pack_size(n, MPI_INTEGER, MPI_COMM_WORLD, size, ierr)
  call same(size, 4 * n, 'the size of packed integers')
  call MPI_Buffer_attach(attached, 4 * 400, ierr)
  call ok(ierr, 'MPI_Buffer_attach')

  ! every mode, blocking and not, against a receive that is posted (a ready send needs one)
  do mode = 1, 8
    in = -1
    call MPI_Irecv(in, n, MPI_INTEGER, previous, mode, MPI_COMM_WORLD, requests(1), ierr)
    call ok(ierr, 'MPI_Irecv')
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    request = MPI_REQUEST_NULL
    select case (mode)
    case (1)
      call MPI_Send(out, n, MPI_INTEGER, next, mode, MPI_COMM_WORLD, ierr)
    case (2)
      call MPI_Ssend(out, n, MPI_INTEGER, next, mode, MPI_COMM_WORLD, ierr)
    case (3)
      call MPI_Bsend(out, n, MPI_INTEGER, next, mode, MPI_COMM_WORLD, ierr)
    case (4)
      call MPI_Rsend(out, n, MPI_INTEGER, next, mode, MPI_COMM_WORLD, ierr)
    case (5)
      call MPI_Isend(out, n, MPI_INTEGER, next, mode, MPI_COMM_WORLD, request, ierr)
    case (6)
      call MPI_Issend(out, n, MPI_INTEGER, next, mode, MPI_COMM_WORLD, request, ierr)
    case (7)
      call MPI_Ibsend(out, n, MPI_INTEGER, next, mode, MPI_COMM_WORLD, request, ierr)
    case (8)
      call MPI_Irsend(out, n, MPI_INTEGER, next, mode, MPI_COMM_WORLD, request, ierr)
    end select
    call ok(ierr, 'a send')
    call MPI_Wait(requests(1), status, ierr)
    call ok(ierr, 'MPI_Wait for a receive')
    call check(requests(1) == MPI_REQUEST_NULL, 'the request of a receive that has ended is not null')
    call same(SOURCE_OF(status), previous, 'MPI_SOURCE')
    call same(TAG_OF(status), mode, 'MPI_TAG')
    call MPI_Get_count(status, MPI_INTEGER, count, ierr)
    call same(count, n, 'MPI_Get_count')
    call check(all(in == [(previous * 100 + place, place = 1, n)]), 'wrong data came')
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call ok(ierr, 'MPI_Wait for a send')
  end do
  call MPI_Buffer_flush(ierr)
  call ok(ierr, 'MPI_Buffer_flush')
  call MPI_Buffer_detach(detached, detached_size, ierr)
  call same(detached_size, 4 * 400, 'the size of the detached buffer')

  ! probes
  call MPI_Isend(out, 3, MPI_INTEGER, next, 9, MPI_COMM_WORLD, request, ierr)
  call MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
  call same(TAG_OF(status), 9, 'the tag of a probe')
  call MPI_Get_elements(status, MPI_INTEGER, count, ierr)
  call same(count, 3, 'MPI_Get_elements')
  call MPI_Iprobe(previous, 9, MPI_COMM_WORLD, flag, status, ierr)
  call check(flag, 'MPI_Iprobe does not see what MPI_Probe has seen')
  call MPI_Iprobe(previous, 10, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, ierr)
  call check(.not. flag, 'MPI_Iprobe sees a message of another tag')
  call MPI_Recv(in, n, MPI_INTEGER, previous, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call ok(ierr, 'MPI_Recv')
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPI_Isend(out, 2, MPI_INTEGER, next, 11, MPI_COMM_WORLD, request, ierr)
  call MPI_Mprobe(previous, 11, MPI_COMM_WORLD, message, status, ierr)
  call ok(ierr, 'MPI_Mprobe')
  call check(message /= MPI_MESSAGE_NULL, 'MPI_Mprobe gives no message')
  call MPI_Mrecv(in, 2, MPI_INTEGER, message, status, ierr)
  call ok(ierr, 'MPI_Mrecv')
  call check(message == MPI_MESSAGE_NULL, 'a received message is not null')
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPI_Isend(out, 2, MPI_INTEGER, next, 12, MPI_COMM_WORLD, request, ierr)
  flag = .false.
  do while (.not. flag)
    call MPI_Improbe(previous, 12, MPI_COMM_WORLD, flag, message, status, ierr)
  end do
  call MPI_Imrecv(in, 2, MPI_INTEGER, message, requests(1), ierr)
  requests(2) = request
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  call ok(ierr, 'MPI_Waitall')
  call MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, message, status, ierr)
  call check(message == MPI_MESSAGE_NO_PROC, 'a probe of MPI_PROC_NULL')
  call MPI_Mrecv(in, 2, MPI_INTEGER, message, status, ierr)
  call same(SOURCE_OF(status), MPI_PROC_NULL, 'MPI_SOURCE of MPI_PROC_NULL')

  ! both ways at once, scalars, characters
  real_out = rank + 0.5d0
  call MPI_Sendrecv(real_out, 1, MPI_DOUBLE_PRECISION, next, 1, real_in, 1, MPI_DOUBLE_PRECISION, previous, 1, &
                    MPI_COMM_WORLD, status, ierr)
  call check(abs(real_in - previous - 0.5d0) < 1d-9, 'MPI_Sendrecv')
  call MPI_Sendrecv_replace(real_out, 1, MPI_DOUBLE_PRECISION, next, 1, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call check(abs(real_out - previous - 0.5d0) < 1d-9, 'MPI_Sendrecv_replace')
  call MPI_Isendrecv(out, 1, MPI_INTEGER, next, 2, in, 1, MPI_INTEGER, previous, 2, MPI_COMM_WORLD, request, ierr)
  call MPI_Wait(request, status, ierr)
  call same(in(1), previous * 100 + 1, 'MPI_Isendrecv')
  call MPI_Isendrecv_replace(out, 1, MPI_INTEGER, next, 2, previous, 2, MPI_COMM_WORLD, request, ierr)
  call MPI_Wait(request, status, ierr)
  call same(out(1), previous * 100 + 1, 'MPI_Isendrecv_replace')
  write (text, '("from ", i0)') rank
  call MPI_Sendrecv_replace(text, len(text), MPI_CHARACTER, next, 3, previous, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  write (text(7:), '(i0)') previous
  call check(text(6:6) == text(7:7), 'characters came wrong')

  ! what is wrong is told
  call MPI_Send(out, -1, MPI_INTEGER, next, 0, MPI_COMM_WORLD, ierr)
  call fails(ierr, MPI_ERR_COUNT, 'a count of -1')
  call MPI_Send(out, 1, MPI_INTEGER, ranks, 0, MPI_COMM_WORLD, ierr)
  call fails(ierr, MPI_ERR_RANK, 'a rank beyond the last')
  call MPI_Send(out, 1, MPI_INTEGER, next, -5, MPI_COMM_WORLD, ierr)
  call fails(ierr, MPI_ERR_TAG, 'a tag of -5')
  call MPI_Send(out, 1, MPI_DATATYPE_NULL, next, 0, MPI_COMM_WORLD, ierr)
  call fails(ierr, MPI_ERR_TYPE, 'no datatype')
  call MPI_Irecv(in, 1, MPI_INTEGER, -17, 0, MPI_COMM_WORLD, request, ierr)
  call fails(ierr, MPI_ERR_RANK, 'a source of -17')
  call MPI_Bsend(out, n, MPI_INTEGER, next, 0, MPI_COMM_WORLD, ierr)
  call fails(ierr, MPI_ERR_BUFFER, 'a buffered send without a buffer')
end subroutine
