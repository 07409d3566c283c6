! cells: how bt, btio and sp cut the cube among ranks, so that sweeps along each dimension keep all busy.
!
! p = q^2 ranks; the cube is cut into q^3 cells, and rank (a, b) has the q cells with x = a + z and
! y = b + z modulo q: one in every layer of every dimension. A sweep in x, y or z goes from layer to
! layer, and in each stage every rank works on one cell, and sends what it carries to the same
! neighbour as ever, who has the next cell of all these lines.
module cells
  use mpi_f08
  use nas
  use flow
  implicit none
  private
  public :: solve_in_sweeps, norm_of_error

  ! A cell: its points, those before it, and those of it that are not a face's, in each dimension.
  ! `u` has a halo two points deep; `r` is the right-hand side; `force` L(u*); `work` is for sweeps.
  type, public :: cell
    integer :: at(3), m(3), before(3), low(3), high(3)
    real(dp), allocatable :: u(:, :, :, :), r(:, :, :, :), force(:, :, :, :), work(:, :, :)
  end type

  ! One line of a cell in dimension d, forwards or backwards: of m points, those from low to high
  ! are not a face's, and `before` are before the first. `carry` comes from the line's piece before,
  ! and goes to the next.
  abstract interface
    subroutine line_work(d, m, low, high, before, u, r, work, carry)
      import :: dp
      integer, intent(in) :: d, m, low, high, before
      real(dp), intent(in) :: u(5, -1:m + 2)
      real(dp), intent(inout) :: r(5, m), work(:, :), carry(:)
    end subroutine
  end interface

  ! What a program does with the solution after an iteration, which is timed; and, in place of
  ! `norm_of_error`, how it finds the errors at the end.
  abstract interface
    subroutine step_work(iteration)
      integer, intent(in) :: iteration
    end subroutine

    function error_work() result(error)
      import :: dp
      real(dp) :: error(5)
    end function
  end interface

  integer, public, protected :: q
  type(cell), allocatable, target, public :: own(:)
  type(MPI_Comm), public, protected :: square             ! the ranks as q x q, periodic
  integer :: neighbour(2, 3)                              ! who has the cells before and behind
  type(MPI_Datatype) :: edges(2, 3), halos(2, 3)          ! of all cells at once

contains

  ! Solves the problem that was set, by sweeps, and ends the program. Of each point, `width` numbers
  ! are kept from the sweep forwards to that back; for the others, see `sweeps` and `finish_flow`.
  subroutine solve_in_sweeps(kernel, title, counts, width, forward, up, backward, down, after, errors)
    character(*), intent(in) :: kernel, title
    real(dp), intent(in) :: counts(4)
    integer, intent(in) :: width, up, down
    procedure(line_work) :: forward, backward
    procedure(step_work), optional :: after
    procedure(error_work), optional :: errors
    real(dp) :: begin, seconds, residual(5)
    integer :: iteration
    call make_cells(kernel, width)
    call set_initial()
    call one_iteration()   ! not timed: memory and connections come into being
    call set_initial()

    begin = stopwatch()
    do iteration = 1, iterations
      call one_iteration()
      if (present(after)) call after(iteration)
    end do
    seconds = MPI_Wtime() - begin
    call apply(1._dp)
    residual = norm_of_r()
    if (present(errors)) then
      call finish_flow(title, seconds, counts, residual, errors())
    else
      call finish_flow(title, seconds, counts, residual, norm_of_error())
    end if

  contains

    subroutine one_iteration()
      call apply(dt)
      call sweeps(forward, up, backward, down)
    end subroutine
  end subroutine

  ! Makes the cells; of each point, `width` numbers are kept from the sweep forwards to that back.
  subroutine make_cells(kernel, width)
    character(*), intent(in) :: kernel
    integer, intent(in) :: width
    integer :: place(2), c, d

    q = nint(sqrt(real(ranks)))
    if (q**2 /= ranks) call give_up(kernel//" goes on a number of ranks that is a square")
    if (3 * q > n) call give_up(kernel//" has too few points in this class for this many ranks")
    call MPI_Cart_create(MPI_COMM_WORLD, 2, [q, q], [.true., .true.], .false., square)
    call MPI_Cart_coords(square, rank, 2, place)
    call MPI_Cart_rank(square, place + [-1, 0], neighbour(1, 1))
    call MPI_Cart_rank(square, place + [1, 0], neighbour(2, 1))
    call MPI_Cart_rank(square, place + [0, -1], neighbour(1, 2))
    call MPI_Cart_rank(square, place + [0, 1], neighbour(2, 2))
    call MPI_Cart_rank(square, place + [1, 1], neighbour(1, 3))
    call MPI_Cart_rank(square, place + [-1, -1], neighbour(2, 3))

    allocate (own(0:q - 1))
    do c = 0, q - 1
      associate (o => own(c))
        o%at = [modulo(place + c, q), c]
        do d = 1, 3
          o%before(d) = first(o%at(d), q, n) - 1
          o%m(d) = first(o%at(d) + 1, q, n) - 1 - o%before(d)
        end do
        o%low = max(1, 2 - o%before)
        o%high = min(o%m, n - 1 - o%before)
        allocate (o%u(5, -1:o%m(1) + 2, -1:o%m(2) + 2, -1:o%m(3) + 2), o%r(5, o%m(1), o%m(2), o%m(3)))
        allocate (o%force(5, o%m(1), o%m(2), o%m(3)), o%work(width, maxval(o%m), maxval(o%m)**2))
      end associate
    end do
    do d = 1, 3
      call make_edges(d)
    end do
    call set_force()
  end subroutine

  ! The datatypes of what is exchanged in dimension d: of all cells that have a neighbour there, two
  ! layers of u, by their addresses in memory.
  subroutine make_edges(d)
    integer, intent(in) :: d
    call make_layers(d, 0, edges(1, d), inner=.true.)
    call make_layers(d, q - 1, edges(2, d), inner=.true.)
    call make_layers(d, 0, halos(1, d), inner=.false.)
    call make_layers(d, q - 1, halos(2, d), inner=.false.)
  end subroutine

  ! Two layers next to one side of all cells that are not at that face of the cube, number `face`
  ! (0 or q - 1): the cell's own, or beyond it.
  subroutine make_layers(d, face, layers, inner)
    integer, intent(in) :: d, face
    type(MPI_Datatype), intent(out) :: layers
    logical, intent(in) :: inner
    type(MPI_Datatype) :: parts(q)
    integer(MPI_ADDRESS_KIND) :: where(q)
    integer :: c, many, points(3), from(3)

    many = 0
    do c = 0, q - 1
      associate (o => own(c))
        if (o%at(d) == face) cycle
        points = o%m
        points(d) = 2
        from = 2                                          ! counted from 0, behind the halo
        from(d) = merge(merge(2, 0, inner), merge(o%m(d), o%m(d) + 2, inner), face == 0)
        many = many + 1
        call MPI_Type_create_subarray(4, [5, o%m + 4], [5, points], [0, from], MPI_ORDER_FORTRAN, &
          MPI_DOUBLE_PRECISION, parts(many))
        call MPI_Get_address(o%u, where(many))
      end associate
    end do
    call MPI_Type_create_struct(many, [(1, c=1, many)], where, parts, layers)
    call MPI_Type_commit(layers)
  end subroutine

  ! Fills the halos. One message goes to each of the six neighbours.
  subroutine exchange()
    type(MPI_Request) :: request(12)
    integer :: d, side, at
    if (q == 1) return
    at = 0
    do d = 1, 3
      do side = 1, 2
        at = at + 1
        call MPI_Irecv(MPI_BOTTOM, 1, halos(side, d), neighbour(side, d), 10 * d + side, square, request(at))
      end do
    end do
    do d = 1, 3
      do side = 1, 2                                      ! our layers before are their halo behind
        at = at + 1
        call MPI_Isend(MPI_BOTTOM, 1, edges(side, d), neighbour(side, d), 10 * d + 3 - side, square, request(at))
      end do
    end do
    call MPI_Waitall(12, request, MPI_STATUSES_IGNORE)
  end subroutine

  ! Gives u its first values.
  subroutine set_initial()
    integer :: c, i, j, k
    do c = 0, q - 1
      associate (o => own(c))
        do k = 1, o%m(3)
          do j = 1, o%m(2)
            do i = 1, o%m(1)
              o%u(:, i, j, k) = initial(o%before(1) + i, o%before(2) + j, o%before(3) + k)
            end do
          end do
        end do
      end associate
    end do
    call exchange()
  end subroutine

  ! force = L(u*).
  subroutine set_force()
    integer :: c, i, j, k
    do c = 0, q - 1
      associate (o => own(c))
        do k = -1, o%m(3) + 2
          do j = -1, o%m(2) + 2
            do i = -1, o%m(1) + 2
              o%u(:, i, j, k) = exact(o%before(1) + i, o%before(2) + j, o%before(3) + k)
            end do
          end do
        end do
        o%force = 0
      end associate
    end do
    call apply(1._dp)
    do c = 0, q - 1
      own(c)%force = own(c)%r
    end do
  end subroutine

  ! r = factor (L(u) - force), and 0 on the faces of the cube.
  subroutine apply(factor)
    real(dp), intent(in) :: factor
    integer :: c, d, one, two
    do c = 0, q - 1
      own(c)%r = -own(c)%force
      do d = 1, 3
        do two = own(c)%low(third(d)), own(c)%high(third(d))
          do one = own(c)%low(other(d)), own(c)%high(other(d))
            call apply_line(own(c), d, one, two)
          end do
        end do
      end do
      own(c)%r = factor * own(c)%r
    end do
  end subroutine

  subroutine apply_line(o, d, one, two)
    type(cell), intent(inout) :: o
    integer, intent(in) :: d, one, two
    real(dp) :: u(5, -1:o%m(d) + 2), r(5, o%m(d))
    call get_line(o, d, one, two, u, r)
    call along(d, o%m(d), o%before(d), u, r)
    call put_line(o, d, one, two, r)
  end subroutine

  ! The two dimensions across dimension d, in order.
  pure integer function other(d)
    integer, intent(in) :: d
    other = merge(2, 1, d == 1)
  end function

  pure integer function third(d)
    integer, intent(in) :: d
    third = merge(2, 3, d == 3)
  end function

  ! The line of u and r in dimension d through the points `one` and `two` of the others.
  pure subroutine get_line(o, d, one, two, u, r)
    type(cell), intent(in) :: o
    integer, intent(in) :: d, one, two
    real(dp), intent(out) :: u(:, :), r(:, :)
    select case (d)
    case (1)
      u = o%u(:, :, one, two)
      r = o%r(:, :, one, two)
    case (2)
      u = o%u(:, one, :, two)
      r = o%r(:, one, :, two)
    case default
      u = o%u(:, one, two, :)
      r = o%r(:, one, two, :)
    end select
  end subroutine

  pure subroutine put_line(o, d, one, two, r)
    type(cell), intent(inout) :: o
    integer, intent(in) :: d, one, two
    real(dp), intent(in) :: r(:, :)
    select case (d)
    case (1)
      o%r(:, :, one, two) = r
    case (2)
      o%r(:, one, :, two) = r
    case default
      o%r(:, one, two, :) = r
    end select
  end subroutine

  ! In each dimension sweeps forwards and back through all lines; then u = u + r. What is carried
  ! from a piece of a line to the next is `up` numbers forwards and `down` back, zeros at first.
  subroutine sweeps(forward, up, backward, down)
    procedure(line_work) :: forward, backward
    integer, intent(in) :: up, down
    integer :: d, c
    do d = 1, 3
      call sweep(d, 1, forward, up)
      call sweep(d, -1, backward, down)
    end do
    do c = 0, q - 1
      associate (o => own(c))
        o%u(:, 1:o%m(1), 1:o%m(2), 1:o%m(3)) = o%u(:, 1:o%m(1), 1:o%m(2), 1:o%m(3)) + o%r
      end associate
    end do
    call exchange()
  end subroutine

  ! One sweep, from layer to layer. While a rank waits for what the layer before carries, what it
  ! has sent itself is under way.
  subroutine sweep(d, step, line, width)
    integer, intent(in) :: d, step, width
    procedure(line_work) :: line
    real(dp), allocatable, asynchronous :: carry(:, :), sent(:, :)
    type(MPI_Request) :: request
    integer :: stage, c, one, two, at, to, from
    to = neighbour(merge(2, 1, step == 1), d)
    from = neighbour(merge(1, 2, step == 1), d)
    request = MPI_REQUEST_NULL
    do stage = merge(0, q - 1, step == 1), merge(q - 1, 0, step == 1), step
      c = findloc([(own(at)%at(d), at=0, q - 1)], stage, 1) - 1
      associate (o => own(c))
        allocate (carry(width, lines(o, d)))
        carry = 0
        if (stage /= merge(0, q - 1, step == 1)) &
          call MPI_Recv(carry, size(carry), MPI_DOUBLE_PRECISION, from, 40 + d, square, MPI_STATUS_IGNORE)
        at = 0
        do two = o%low(third(d)), o%high(third(d))
          do one = o%low(other(d)), o%high(other(d))
            at = at + 1
            call sweep_line(o, d, one, two, line, o%work(:, :, at), carry(:, at))
          end do
        end do
      end associate
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      call move_alloc(carry, sent)
      if (stage /= merge(q - 1, 0, step == 1)) &
        call MPI_Isend(sent, size(sent), MPI_DOUBLE_PRECISION, to, 40 + d, square, request)
    end do
    call MPI_Wait(request, MPI_STATUS_IGNORE)
  end subroutine

  ! How many lines of a cell go in dimension d, but for those on faces of the cube.
  pure integer function lines(o, d)
    type(cell), intent(in) :: o
    integer, intent(in) :: d
    lines = product(o%high - o%low + 1) / (o%high(d) - o%low(d) + 1)
  end function

  subroutine sweep_line(o, d, one, two, line, work, carry)
    type(cell), intent(inout) :: o
    integer, intent(in) :: d, one, two
    procedure(line_work) :: line
    real(dp), intent(inout) :: work(:, :), carry(:)
    real(dp) :: u(5, -1:o%m(d) + 2), r(5, o%m(d))
    call get_line(o, d, one, two, u, r)
    call line(d, o%m(d), o%low(d), o%high(d), o%before(d), u, r, work, carry)
    call put_line(o, d, one, two, r)
  end subroutine

  ! The roots of the mean squares of r, by unknown.
  function norm_of_r()
    real(dp) :: norm_of_r(5)
    integer :: c, m
    norm_of_r = 0
    do c = 0, q - 1
      do m = 1, 5
        norm_of_r(m) = norm_of_r(m) + sum(own(c)%r(m, :, :, :)**2)
      end do
    end do
    norm_of_r = root_of_mean(norm_of_r)
  end function

  ! The same of u - u*.
  function norm_of_error()
    real(dp) :: norm_of_error(5)
    integer :: c, i, j, k
    norm_of_error = 0
    do c = 0, q - 1
      associate (o => own(c))
        do k = 1, o%m(3)
          do j = 1, o%m(2)
            do i = 1, o%m(1)
              norm_of_error = norm_of_error &
                + (o%u(:, i, j, k) - exact(o%before(1) + i, o%before(2) + j, o%before(3) + k))**2
            end do
          end do
        end do
      end associate
    end do
    norm_of_error = root_of_mean(norm_of_error)
  end function

  ! Of this rank's sums of squares; points on faces do not count.
  function root_of_mean(squares) result(root)
    real(dp), intent(in) :: squares(5)
    real(dp) :: root(5)
    call MPI_Allreduce(squares, root, 5, MPI_DOUBLE_PRECISION, MPI_SUM, square)
    root = sqrt(root / real(n - 2, dp)**3)
  end function
end module
