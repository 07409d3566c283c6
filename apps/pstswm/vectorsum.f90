! vectorsum.f90: the sum of a vector over the ranks of a communicator, which all of them get: the
! communication of the Legendre transform that is not pipelined (paper, section 2).
!
!   allreduce            MPI_Allreduce
!   allreduce_init       MPI_Allreduce_init once, then MPI_Start and MPI_Wait
!   reduce_scatter       MPI_Reduce_scatter_block and MPI_Allgather
!   reduce_scatter_init  MPI_Reduce_scatter_block_init and MPI_Allgather_init once, then as above
!   halving              by hand: log2 P swaps of messages that become half as long each time, in
!                        which the rank's share of the sum comes together; then as many that become
!                        twice as long, in which the shares are spread (van de Geijn 1991; P is a
!                        power of 2)
!   ring                 by hand: P - 1 exchanges with the neighbours in a ring in which the shares
!                        come together, and P - 1 in which they are spread; for every P
!
! All but the first two have two halves: after the first a rank has its share of the sum, after the
! second all have all. In between it may compute something from its share, and that is spread in
! place of the sum, to another vector. All shares are equally long.
module vectorsum
  use mpi_f08
  use persistent
  use sphere, only: dp
  use clock, only: start_clock, stop_clock, in_legendre
  use options, only: sum_by, ahead
  use exchange
  implicit none
  private

  type, public :: sum_type
    type(MPI_Comm) :: comm
    integer :: ranks = 1, rank = 0
    real(dp), pointer, contiguous :: v(:) => null()         ! the vector
    real(dp), pointer, contiguous :: w(:) => null()         ! what is spread: v, or another one
    real(dp), pointer, contiguous :: share(:) => null()     ! this rank's share of the sum
    real(dp), pointer, contiguous :: other(:) => null()     ! what others send
    integer :: each = 0                                     ! how long a share is
    logical :: of_sum = .true.                         ! v is what is spread
    type(MPI_Request) :: request, spreading_request
    type(exchange_type), allocatable :: gathering(:), spreading(:)
    integer, allocatable :: first(:), last(:)          ! of v, where step s of the gathering adds
  end type
  public :: make_sum, sum_shares, spread_shares

contains

  ! Prepares for summing the vector v over the ranks of `comm`, and for spreading w, as long a
  ! vector, or the sum itself without w. Their length is a multiple of the number of ranks.
  subroutine make_sum(comm, v, s, w)
    type(MPI_Comm), intent(in) :: comm
    real(dp), target, contiguous, intent(in) :: v(:)
    type(sum_type), intent(out) :: s
    real(dp), target, contiguous, intent(in), optional :: w(:)
    s%comm = comm
    s%v => v
    s%w => v
    s%of_sum = .not. present(w)
    if (present(w)) s%w => w
    call MPI_Comm_size(comm, s%ranks)
    call MPI_Comm_rank(comm, s%rank)
    s%each = size(v) / s%ranks
    select case (sum_by)
    case ('allreduce_init')
      call MPI_Allreduce_init(MPI_IN_PLACE, s%v, size(s%v), MPI_DOUBLE_PRECISION, MPI_SUM, &
        s%comm, MPI_INFO_NULL, s%request)
    case ('reduce_scatter', 'reduce_scatter_init')
      allocate (s%other(s%each))
      if (sum_by == 'reduce_scatter_init') call make_persistent(s)
    case ('halving')
      allocate (s%other(size(v)))
      call make_halving(s)
    case ('ring')
      allocate (s%other(size(v)))
      call make_ring(s)
    end select
    if (s%ranks == 1) then
      s%share => s%v
    else if (sum_by(1:14) == 'reduce_scatter') then
      s%share => s%other
    else
      s%share => part(s, s%v, s%rank)
    end if
  end subroutine

  ! What is spread lies in its place already, but for the sum itself.
  subroutine make_persistent(s)
    type(sum_type), intent(inout) :: s
    call MPI_Reduce_scatter_block_init(s%v, s%other, s%each, MPI_DOUBLE_PRECISION, MPI_SUM, &
      s%comm, MPI_INFO_NULL, s%request)
    if (s%of_sum) then
      call MPI_Allgather_init(s%other, s%each, MPI_DOUBLE_PRECISION, s%w, s%each, &
        MPI_DOUBLE_PRECISION, s%comm, MPI_INFO_NULL, s%spreading_request)
    else
      call MPI_Allgather_init(MPI_IN_PLACE, 0, MPI_DOUBLE_PRECISION, s%w, s%each, &
        MPI_DOUBLE_PRECISION, s%comm, MPI_INFO_NULL, s%spreading_request)
    end if
  end subroutine

  ! The share of rank number i modulo the number of ranks.
  function part(s, v, i)
    type(sum_type), intent(in) :: s
    real(dp), pointer, contiguous, intent(in) :: v(:)
    integer, intent(in) :: i
    real(dp), pointer, contiguous :: part(:)
    integer :: place
    place = s%each * modulo(i, s%ranks)
    part => v(place + 1:place + s%each)
  end function

  ! Gathering: of the part that is still a matter of the rank (at first the whole vector), one half
  ! remains so. The other half goes to the partner, whose share of the rank's half comes and is
  ! added. Spreading goes the same way back.
  subroutine make_halving(s)
    type(sum_type), intent(inout) :: s
    integer :: steps, step, distance, low, middle, high, used, from, to
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
          from = middle
          to = high
          high = middle - 1
        else
          from = low
          to = middle - 1
          low = middle
        end if
        g%out => s%v(from:to)
        s%first(step) = low
        s%last(step) = high
        g%in => s%other(used + 1:used + high - low + 1)
        used = used + high - low + 1
        call aim(b, s%comm, g%to, g%from)
        b%out => s%w(low:high)
        b%in => s%w(from:to)
      end associate
    end do
  end subroutine

  ! Gathering: in step t a rank passes on the share of the rank t behind it, to which everybody
  ! its partners have added. Spreading: the finished shares go round once more.
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
        g%out => part(s, s%v, s%rank - step)
        g%in => part(s, s%other, s%rank - step - 1)
        s%first(step) = s%each * modulo(s%rank - step - 1, s%ranks) + 1
        s%last(step) = s%first(step) + s%each - 1
        b%out => part(s, s%w, s%rank - step + 1)
        b%in => part(s, s%w, s%rank - step)
      end associate
    end do
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

  ! The first half: the rank's share of the sum of all ranks' vectors comes together. What has no
  ! halves is done whole, and all of v is the sum.
  subroutine sum_shares(s)
    type(sum_type), intent(inout) :: s
    if (s%ranks == 1) return
    call start_clock()
    select case (sum_by)
    case ('allreduce')
      call MPI_Allreduce(MPI_IN_PLACE, s%v, size(s%v), MPI_DOUBLE_PRECISION, MPI_SUM, s%comm)
    case ('allreduce_init', 'reduce_scatter_init')
      call MPI_Start(s%request)
      call MPI_Wait(s%request, MPI_STATUS_IGNORE)
    case ('reduce_scatter')
      call MPI_Reduce_scatter_block(s%v, s%other, s%each, MPI_DOUBLE_PRECISION, MPI_SUM, s%comm)
    case default
      call run(s, s%gathering, adding=.true.)
    end select
    call stop_clock(in_legendre)
  end subroutine

  ! The second half: all shares of w come to all ranks.
  subroutine spread_shares(s)
    type(sum_type), intent(inout) :: s
    if (s%ranks == 1) return
    call start_clock()
    select case (sum_by)
    case ('allreduce', 'allreduce_init')
    case ('reduce_scatter_init')
      call MPI_Start(s%spreading_request)
      call MPI_Wait(s%spreading_request, MPI_STATUS_IGNORE)
    case ('reduce_scatter')
      if (s%of_sum) then
        call MPI_Allgather(s%other, s%each, MPI_DOUBLE_PRECISION, s%w, s%each, &
          MPI_DOUBLE_PRECISION, s%comm)
      else
        call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DOUBLE_PRECISION, s%w, s%each, &
          MPI_DOUBLE_PRECISION, s%comm)
      end if
    case default
      call run(s, s%spreading, adding=.false.)
    end select
    call stop_clock(in_legendre)
  end subroutine

  subroutine run(s, exchanges, adding)
    type(sum_type), intent(inout) :: s
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
end module
