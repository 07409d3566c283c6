! transposition.f90: each rank of a communicator has a block of data for each other: the
! communication of the transposed Fourier transform (paper, section 2), by MPI or by hand.
!
!   alltoallv        MPI_Alltoallv
!   alltoallv_init   MPI_Alltoallv_init once, then MPI_Start and MPI_Wait
!   neighbor         MPI_Neighbor_alltoallv, on a graph in which everybody is everybody's neighbour
!   neighbor_init    MPI_Neighbor_alltoallv_init
!   hand             P - 1 exchanges: swaps (in step s, rank i swaps with i xor s, so that the
!                    pairs of a step do not disturb each other) or a ring (i sends to i + s and
!                    receives from i - s)
module transposition
  use mpi_f08
  use persistent
  use sphere, only: dp
  use clock, only: start_clock, stop_clock, in_fourier
  use options, only: transpose_by, pattern, ahead, overlap
  use exchange
  implicit none
  private

  ! What is transposed extends this type by the data and by how a rank's block is copied.
  type, abstract, public :: transposition_type
    type(MPI_Comm) :: comm
    integer :: ranks = 1, rank = 0
    integer, allocatable :: out_counts(:), in_counts(:)     ! per other rank, in numbers
    integer, allocatable :: out_places(:), in_places(:)     ! where its block begins, from 0
    real(dp), pointer, contiguous :: out(:) => null(), in(:) => null()
    type(MPI_Request) :: request
    type(exchange_type), allocatable :: exchanges(:)
  contains
    procedure(copy), deferred :: pack       ! copies what goes to one rank to its block `outgoing`
    procedure(copy), deferred :: unpack     ! copies what came from one from its block `incoming`
    procedure :: outgoing, incoming
    procedure :: prepare => make_transposition
    procedure :: run => transpose_blocks
  end type

  abstract interface
    subroutine copy(t, other)
      import
      class(transposition_type), intent(inout) :: t
      integer, intent(in) :: other
    end subroutine
  end interface

contains

  ! The block for another rank. The rank's own block is put where it would come to: it needs no
  ! communication.
  function outgoing(t, other)
    class(transposition_type), intent(in) :: t
    integer, intent(in) :: other
    real(dp), pointer, contiguous :: outgoing(:)
    if (other == t%rank) then
      outgoing => t%incoming(other)
    else
      outgoing => t%out(t%out_places(other) + 1:)
    end if
  end function

  ! The block that comes from a rank.
  function incoming(t, other)
    class(transposition_type), intent(in) :: t
    integer, intent(in) :: other
    real(dp), pointer, contiguous :: incoming(:)
    incoming => t%in(t%in_places(other) + 1:)
  end function

  ! Prepares for blocks of these sizes among the ranks of `comm`.
  subroutine make_transposition(t, comm, out_counts, in_counts)
    class(transposition_type), intent(inout) :: t
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: out_counts(0:), in_counts(0:)
    integer :: i
    integer, allocatable :: everybody(:)
    call MPI_Comm_size(comm, t%ranks)
    call MPI_Comm_rank(comm, t%rank)
    allocate (t%out_counts(0:t%ranks - 1), t%in_counts(0:t%ranks - 1))
    allocate (t%out_places(0:t%ranks - 1), t%in_places(0:t%ranks - 1))
    t%out_counts = out_counts
    t%in_counts = in_counts
    t%out_places = [(sum(out_counts(0:i - 1)), i = 0, t%ranks - 1)]
    t%in_places = [(sum(in_counts(0:i - 1)), i = 0, t%ranks - 1)]
    allocate (t%out(sum(out_counts)), t%in(sum(in_counts)))
    t%out_counts(t%rank) = 0
    t%in_counts(t%rank) = 0
    t%comm = comm
    if (transpose_by(1:8) == 'neighbor') then
      everybody = [(i, i = 0, t%ranks - 1)]
      call MPI_Dist_graph_create_adjacent(comm, t%ranks, everybody, MPI_UNWEIGHTED, &
        t%ranks, everybody, MPI_UNWEIGHTED, MPI_INFO_NULL, .false., t%comm)
    end if
    select case (transpose_by)
    case ('alltoallv_init')
      call MPI_Alltoallv_init(t%out, t%out_counts, t%out_places, MPI_DOUBLE_PRECISION, &
        t%in, t%in_counts, t%in_places, MPI_DOUBLE_PRECISION, t%comm, MPI_INFO_NULL, t%request)
    case ('neighbor_init')
      call MPI_Neighbor_alltoallv_init(t%out, t%out_counts, t%out_places, MPI_DOUBLE_PRECISION, &
        t%in, t%in_counts, t%in_places, MPI_DOUBLE_PRECISION, t%comm, MPI_INFO_NULL, t%request)
    case ('hand')
      call make_exchanges(t)
    end select
  end subroutine

  subroutine make_exchanges(t)
    class(transposition_type), intent(inout) :: t
    integer :: s
    allocate (t%exchanges(t%ranks - 1))
    do s = 1, t%ranks - 1
      associate (e => t%exchanges(s))
        e%comm = t%comm
        e%tag = 1
        if (pattern == 'swap') then
          e%to = ieor(t%rank, s)
          e%from = e%to
        else
          e%to = mod(t%rank + s, t%ranks)
          e%from = mod(t%rank - s + t%ranks, t%ranks)
        end if
        e%out => t%out(t%out_places(e%to) + 1:t%out_places(e%to) + t%out_counts(e%to))
        e%in => t%in(t%in_places(e%from) + 1:t%in_places(e%from) + t%in_counts(e%from))
      end associate
    end do
  end subroutine

  ! Packs, communicates, unpacks. With overlap, one block is packed or unpacked while others are
  ! under way.
  subroutine transpose_blocks(t)
    class(transposition_type), intent(inout) :: t
    integer :: i
    if (transpose_by == 'hand') then
      call by_hand(t)
      return
    end if
    do i = 0, t%ranks - 1
      call t%pack(i)
    end do
    call start_clock()
    select case (transpose_by)
    case ('alltoallv')
      call MPI_Alltoallv(t%out, t%out_counts, t%out_places, MPI_DOUBLE_PRECISION, &
        t%in, t%in_counts, t%in_places, MPI_DOUBLE_PRECISION, t%comm)
    case ('neighbor')
      call MPI_Neighbor_alltoallv(t%out, t%out_counts, t%out_places, MPI_DOUBLE_PRECISION, &
        t%in, t%in_counts, t%in_places, MPI_DOUBLE_PRECISION, t%comm)
    case default
      call MPI_Start(t%request)
      call MPI_Wait(t%request, MPI_STATUS_IGNORE)
    end select
    call stop_clock(in_fourier)
    do i = 0, t%ranks - 1
      call t%unpack(i)
    end do
  end subroutine

  subroutine by_hand(t)
    class(transposition_type), intent(inout) :: t
    integer :: s, i
    if (ahead) then
      do s = 1, t%ranks - 1
        call post(t%exchanges(s))
      end do
    end if
    if (.not. overlap) then
      do i = 0, t%ranks - 1
        call t%pack(i)
      end do
    end if
    do s = 1, t%ranks - 1
      if (overlap) call t%pack(t%exchanges(s)%to)
      call start_clock()
      if (.not. ahead) call post(t%exchanges(s))
      call start(t%exchanges(s))
      if (.not. overlap) call finish(t%exchanges(s))
      call stop_clock(in_fourier)
      if (overlap .and. s > 1) call take(s - 1)
    end do
    if (overlap) then
      call t%pack(t%rank)
      call t%unpack(t%rank)
      if (t%ranks > 1) call take(t%ranks - 1)
    else
      do i = 0, t%ranks - 1
        call t%unpack(i)
      end do
    end if

  contains

    subroutine take(step)
      integer, intent(in) :: step
      call start_clock()
      call finish(t%exchanges(step))
      call stop_clock(in_fourier)
      call t%unpack(t%exchanges(step)%from)
    end subroutine
  end subroutine
end module
