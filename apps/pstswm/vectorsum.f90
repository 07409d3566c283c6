! vectorsum.f90: the sum of a vector over the ranks of a communicator, which all of them get: the
! communication of the Legendre transform that is not pipelined (paper, section 2).
!
!   allreduce        MPI_Allreduce
!   allreduce_init   MPI_Allreduce_init once, then MPI_Start and MPI_Wait
!   reduce_scatter   MPI_Reduce_scatter and MPI_Allgatherv
!   halving          by hand: log2 P swaps of messages that become half as long each time, in which
!                    the rank's share of the sum comes together; then as many that become twice as
!                    long, in which the shares are spread (van de Geijn 1991; P is a power of 2)
!   ring             by hand: P - 1 exchanges with the neighbours in a ring in which the shares
!                    come together, and P - 1 in which they are spread; for every P
module vectorsum
  use mpi_f08
  use sphere, only: dp
  use clock, only: start_clock, stop_clock, in_legendre
  use options, only: sum_by, ahead
  use mesh, only: cut
  use exchange
  implicit none
  private

  type, public :: sum_type
    type(MPI_Comm) :: comm
    integer :: ranks = 1, rank = 0
    real(dp), pointer, contiguous :: v(:) => null()         ! the vector
    real(dp), pointer, contiguous :: other(:) => null()     ! what others send
    integer, allocatable :: counts(:), places(:)       ! the ranks' shares of the vector
    type(MPI_Request) :: request
    type(exchange_type), allocatable :: gathering(:), spreading(:)
    integer, allocatable :: first(:), last(:)          ! of v, where step s of the gathering adds
  end type
  public :: make_sum, sum_over_ranks

contains

  ! Prepares for summing the vector v over the ranks of `comm`.
  subroutine make_sum(comm, v, s)
    type(MPI_Comm), intent(in) :: comm
    real(dp), target, contiguous, intent(in) :: v(:)
    type(sum_type), intent(out) :: s
    integer :: i, first
    s%comm = comm
    s%v => v
    call MPI_Comm_size(comm, s%ranks)
    call MPI_Comm_rank(comm, s%rank)
    allocate (s%counts(0:s%ranks - 1), s%places(0:s%ranks - 1))
    do i = 0, s%ranks - 1
      call cut(size(v), s%ranks, i, first, s%counts(i))
      s%places(i) = first - 1
    end do
    select case (sum_by)
    case ('allreduce_init')
      call MPI_Allreduce_init(MPI_IN_PLACE, s%v, size(s%v), MPI_DOUBLE_PRECISION, MPI_SUM, &
        s%comm, MPI_INFO_NULL, s%request)
    case ('reduce_scatter')
      allocate (s%other(s%counts(s%rank)))
    case ('halving')
      allocate (s%other(size(v)))
      call make_halving(s)
    case ('ring')
      allocate (s%other(size(v)))
      call make_ring(s)
    end select
  end subroutine

  ! Gathering: of the part that is still a matter of the rank (at first the whole vector), one half
  ! remains so. The other half goes to the partner, whose share of the rank's half comes and is
  ! added. Spreading goes the same way back.
  subroutine make_halving(s)
    type(sum_type), intent(inout) :: s
    integer :: steps, step, distance, low, middle, high, used
    steps = 0
    do while (2**steps < s%ranks)
      steps = steps + 1
    end do
    allocate (s%gathering(steps), s%spreading(steps), s%first(steps), s%last(steps))
    low = 1
    high = size(s%v)
    used = 0
    do step = 1, steps
      distance = s%ranks / 2**step
      middle = low + (high - low + 1) / 2
      associate (g => s%gathering(step), b => s%spreading(steps + 1 - step))
        call aim(g, s%comm, ieor(s%rank, distance), ieor(s%rank, distance))
        if (iand(s%rank, distance) == 0) then
          g%out => s%v(middle:high)
          high = middle - 1
        else
          g%out => s%v(low:middle - 1)
          low = middle
        end if
        s%first(step) = low
        s%last(step) = high
        g%in => s%other(used + 1:used + high - low + 1)
        used = used + high - low + 1
        call aim(b, s%comm, g%to, g%from)
        b%out => s%v(low:high)
        b%in => g%out
      end associate
    end do
  end subroutine

  ! Gathering: in step t a rank passes on the share of the rank t behind it, to which everybody
  ! whom it has met has added. Spreading: the finished shares go round once more.
  subroutine make_ring(s)
    type(sum_type), intent(inout) :: s
    integer :: step, next, before
    allocate (s%gathering(s%ranks - 1), s%spreading(s%ranks - 1))
    allocate (s%first(s%ranks - 1), s%last(s%ranks - 1))
    next = mod(s%rank + 1, s%ranks)
    before = modulo(s%rank - 1, s%ranks)
    do step = 1, s%ranks - 1
      associate (g => s%gathering(step), b => s%spreading(step))
        call aim(g, s%comm, next, before)
        call aim(b, s%comm, next, before)
        g%out => share(s%v, s%rank - step)
        g%in => share(s%other, s%rank - step - 1)
        s%first(step) = s%places(modulo(s%rank - step - 1, s%ranks)) + 1
        s%last(step) = s%first(step) + size(g%in) - 1
        b%out => share(s%v, s%rank - step + 1)
        b%in => share(s%v, s%rank - step)
      end associate
    end do

  contains

    function share(v, owner)
      real(dp), pointer, contiguous, intent(in) :: v(:)
      integer, intent(in) :: owner
      real(dp), pointer, contiguous :: share(:)
      integer :: i
      i = modulo(owner, s%ranks)
      share => v(s%places(i) + 1:s%places(i) + s%counts(i))
    end function
  end subroutine

  subroutine aim(e, comm, to, from)
    type(exchange_type), intent(inout) :: e
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: to, from
    e%comm = comm
    e%to = to
    e%from = from
    e%tag = 2
  end subroutine

  ! The vector becomes the sum of all ranks' vectors.
  subroutine sum_over_ranks(s)
    type(sum_type), intent(inout) :: s
    if (s%ranks == 1) return
    call start_clock()
    select case (sum_by)
    case ('allreduce')
      call MPI_Allreduce(MPI_IN_PLACE, s%v, size(s%v), MPI_DOUBLE_PRECISION, MPI_SUM, s%comm)
    case ('allreduce_init')
      call MPI_Start(s%request)
      call MPI_Wait(s%request, MPI_STATUS_IGNORE)
    case ('reduce_scatter')
      call MPI_Reduce_scatter(s%v, s%other, s%counts, MPI_DOUBLE_PRECISION, MPI_SUM, s%comm)
      call MPI_Allgatherv(s%other, size(s%other), MPI_DOUBLE_PRECISION, &
        s%v, s%counts, s%places, MPI_DOUBLE_PRECISION, s%comm)
    case default
      call run(s%gathering, adding=.true.)
      call run(s%spreading, adding=.false.)
    end select
    call stop_clock(in_legendre)

  contains

    subroutine run(exchanges, adding)
      type(exchange_type), intent(inout) :: exchanges(:)
      logical, intent(in) :: adding
      integer :: step
      if (ahead) then
        do step = 1, size(exchanges)
          call post(exchanges(step))
        end do
      end if
      do step = 1, size(exchanges)
        if (.not. ahead) call post(exchanges(step))
        call start(exchanges(step))
        call finish(exchanges(step))
        if (adding) then
          s%v(s%first(step):s%last(step)) = s%v(s%first(step):s%last(step)) + exchanges(step)%in
        end if
      end do
    end subroutine
  end subroutine
end module
