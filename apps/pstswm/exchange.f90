! exchange.f90: SWAP and SENDRECV, of which everything that is written by hand consists (paper,
! section 2.1), by each of the protocols that MPI offers.
!
! An exchange sends a buffer to one rank and receives another from one: from the same rank in a
! SWAP, from another in a SENDRECV. It has three stages, so that an algorithm may post the receives
! of several exchanges together (receive-ahead) and may compute between two stages (overlap):
!
!                 post                   start                     finish
!   sendrecv                             MPI_Sendrecv
!   ordered                              MPI_Send and MPI_Recv
!   isend                                MPI_Isend                 MPI_Recv, MPI_Wait
!   irecv         MPI_Irecv              MPI_Send                  MPI_Wait
!   nonblocking   MPI_Irecv              MPI_Isend                 MPI_Waitall
!   ready         MPI_Irecv, the word    the word, MPI_Rsend       MPI_Waitall
!   native                               both begin (native.c)     both are waited for
!   sockets                              the same                  the same
!
! The last two are what a program could do without MPI: rings in the shared memory of one host, and
! plain TCP connections.
!
! A ready send is right only if its receive has been posted. The receiver says so by an empty
! message, "the word".
!
! In `ordered` a rank sends first if it sends to a higher rank. In each circle of ranks (a sends to
! b, b to c, c to a; a swap is a circle of two) the lowest one then sends first and the highest one
! receives first, so no circle waits for itself, whether or not MPI_Send waits for the receiver.
module exchange
  use, intrinsic :: iso_c_binding, only: c_int64_t, c_loc, c_size_t
  use mpi_f08
  use native
  use sphere, only: dp
  use options, only: protocol
  implicit none
  private
  integer, parameter :: word_tag = 1000

  type, public :: exchange_type
    type(MPI_Comm) :: comm
    integer :: to = 0, from = 0, tag = 0
    real(dp), pointer, contiguous :: out(:) => null(), in(:) => null()
    type(MPI_Request) :: requests(3)     ! the receive, the send, the word
    integer :: world_to = -1, world_from = -1           ! for `native` and `sockets`
    integer(c_int64_t) :: tickets(2) = 0
  end type
  public :: post, start, finish

contains

  subroutine post(e)
    type(exchange_type), intent(inout) :: e
    e%requests = MPI_REQUEST_NULL
    select case (protocol)
    case ('irecv', 'nonblocking', 'ready')
      call MPI_Irecv(e%in, size(e%in), MPI_DOUBLE_PRECISION, e%from, e%tag, e%comm, e%requests(1))
    end select
    if (protocol == 'ready') then
      call MPI_Isend(e%out, 0, MPI_DOUBLE_PRECISION, e%from, word_tag + e%tag, e%comm, &
        e%requests(3))
    end if
  end subroutine

  subroutine start(e)
    type(exchange_type), intent(inout) :: e
    integer :: me
    real(dp) :: nothing(1)
    select case (protocol)
    case ('sendrecv')
      call MPI_Sendrecv(e%out, size(e%out), MPI_DOUBLE_PRECISION, e%to, e%tag, &
        e%in, size(e%in), MPI_DOUBLE_PRECISION, e%from, e%tag, e%comm, MPI_STATUS_IGNORE)
    case ('ordered')
      call MPI_Comm_rank(e%comm, me)
      if (me < e%to) then
        call send(e)
        call receive(e)
      else
        call receive(e)
        call send(e)
      end if
    case ('isend', 'nonblocking')
      call MPI_Isend(e%out, size(e%out), MPI_DOUBLE_PRECISION, e%to, e%tag, e%comm, e%requests(2))
    case ('irecv')
      call send(e)
    case ('ready')
      call MPI_Recv(nothing, 0, MPI_DOUBLE_PRECISION, e%to, word_tag + e%tag, e%comm, &
        MPI_STATUS_IGNORE)
      call MPI_Rsend(e%out, size(e%out), MPI_DOUBLE_PRECISION, e%to, e%tag, e%comm)
    case ('native', 'sockets')
      call start_native(e)
    end select
  end subroutine

  subroutine finish(e)
    type(exchange_type), intent(inout) :: e
    if (is_native(protocol)) then
      call native_wait(e%tickets(1))
      call native_wait(e%tickets(2))
      return
    end if
    if (protocol == 'isend') call receive(e)
    call MPI_Waitall(3, e%requests, MPI_STATUSES_IGNORE)
  end subroutine

  ! Messages of a pair of ranks have no tags. Both ranks come to their exchanges in the same order,
  ! so receiving begins here, not when receives are posted ahead.
  subroutine start_native(e)
    type(exchange_type), intent(inout) :: e
    integer(c_size_t), parameter :: bytes = storage_size(1._dp) / 8
    if (e%world_to < 0) then
      e%world_to = world_rank(e%comm, e%to)
      e%world_from = world_rank(e%comm, e%from)
    end if
    e%tickets(1) = native_receive(e%world_from, c_loc(e%in), size(e%in) * bytes)
    e%tickets(2) = native_send(e%world_to, c_loc(e%out), size(e%out) * bytes)
  end subroutine

  subroutine send(e)
    type(exchange_type), intent(in) :: e
    call MPI_Send(e%out, size(e%out), MPI_DOUBLE_PRECISION, e%to, e%tag, e%comm)
  end subroutine

  subroutine receive(e)
    type(exchange_type), intent(in) :: e
    call MPI_Recv(e%in, size(e%in), MPI_DOUBLE_PRECISION, e%from, e%tag, e%comm, MPI_STATUS_IGNORE)
  end subroutine
end module
