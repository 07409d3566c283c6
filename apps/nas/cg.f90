! cg: the smallest eigenvalue of a large sparse matrix, by the inverse power method with conjugate
! gradients.
!
!   make apps && dist/bin/mpiexec -n 4 build/apps/cg W
!
! The matrix A is symmetric with a random pattern: a sum of weighted products of sparse random
! vectors with themselves, less a shift on its diagonal. Each of the iterations solves A z = x
! approximately by 25 steps of conjugate gradients, takes shift + 1 / (x z) as the estimate of the
! eigenvalue, and goes on with z, scaled to length 1.
!
! Ranks form a grid, whose rows and columns cut the matrix; a rank has one block. A vector is cut
! by the columns of the grid, and every row of the grid has it whole. The product q = A p takes
! two communications, both from rank to rank: the partial products of a row of ranks are added up
! by doubling distances; then ranks exchange with their transposed partners, so that q is cut by
! columns again. Inner products are added up along the row of ranks in the same way.
! The number of ranks must be a power of two.
program cg
  use mpi_f08
  use nas
  implicit none
  integer, parameter :: steps = 25                        ! of conjugate gradients
  real(dp), parameter :: condition = 0.1_dp, tolerance = 1e-10_dp
  integer :: n, nonzeros, iterations                      ! the problem
  real(dp) :: shift, published
  integer :: grid_rows, grid_columns, row, column, stages ! the grid, and the rank's place in it
  integer :: rows, columns, top, left                     ! its block, and what is above and before
  integer, allocatable :: partners(:)                     ! in its row, by doubling distances
  integer :: transposed, part, part_size                  ! its partner; what of its rows
  integer, allocatable :: begin_of(:), column_of(:)       ! the block, row by row
  real(dp), allocatable :: element(:)
  real(dp), allocatable, asynchronous :: x(:), z(:), p(:), q(:), r(:), product(:), other(:)
  real(dp) :: zeta, begin, seconds, flops
  character(2) :: class
  integer :: iteration

  class = start("cg", ["S", "W", "A"])
  select case (class)
  case ("W")
    call set_problem(7000, 8, 12._dp, 10.362595087124_dp)
  case ("A")
    call set_problem(14000, 11, 20._dp, 17.130235054029_dp)
  case default
    call set_problem(1400, 7, 10._dp, 8.5971775078648_dp)
  end select
  if (.not. is_power_of_two(ranks)) call give_up("cg goes on a number of ranks that is a power of two")
  call cut()
  call make_matrix()
  allocate (x(columns), z(columns), p(columns), q(columns), r(columns), product(rows), other(rows))

  x = 1
  call solve()      ! not timed: memory and connections come into being
  x = 1
  begin = stopwatch()
  do iteration = 1, iterations
    call solve()
    zeta = shift + 1 / inner(x, z)
    x = z / sqrt(inner(z, z))
  end do
  seconds = MPI_Wtime() - begin

  if (rank == 0) print '("eigenvalue", f17.13, ", should be", f17.13)', zeta, published
  flops = 2._dp * iterations * n * (3 + nonzeros * (nonzeros + 1) + steps * (5 + nonzeros * (nonzeros + 1)) + 3)
  call finish("CG class "//trim(class)//": smallest eigenvalue", seconds, flops, &
    agrees([zeta], [published], tolerance))

contains

  subroutine set_problem(order, per_vector, by, result)
    integer, intent(in) :: order, per_vector
    real(dp), intent(in) :: by, result
    n = order
    nonzeros = per_vector
    iterations = 15
    shift = by
    published = result
  end subroutine

  ! Makes the grid, which has as many columns as rows, or twice as many, and finds the rank's place.
  !
  ! The rank in row i and column j has the sum for rows i, and wants it for columns j. With s
  ! columns a row (1 or 2), rows i are the columns s i to s i + s - 1. Its partner is in row j / s
  ! and column s i + mod(j, s): that one has the sum for columns j, and wants the part number mod(j,
  ! s) of this rank's rows.
  subroutine cut()
    integer :: per_row, stage
    grid_columns = 1
    do while (grid_columns**2 < ranks)
      grid_columns = 2 * grid_columns
    end do
    grid_rows = ranks / grid_columns
    per_row = grid_columns / grid_rows
    row = rank / grid_columns
    column = mod(rank, grid_columns)

    top = first(row, grid_rows, n) - 1
    rows = first(row + 1, grid_rows, n) - 1 - top
    left = first(column, grid_columns, n) - 1
    columns = first(column + 1, grid_columns, n) - 1 - left

    stages = bit_size(grid_columns) - 1 - leadz(grid_columns)
    partners = [(row * grid_columns + ieor(column, 2**stage), stage=0, stages - 1)]
    part = per_row * row + mod(column, per_row)
    transposed = column / per_row * grid_columns + part
    part_size = first(part + 1, grid_columns, n) - first(part, grid_columns, n)
    part = first(part, grid_columns, n) - top             ! from here on where the part begins
  end subroutine

  ! Makes the rank's block of A = sum over i of w(i) v(i) v(i)^T + (condition - shift) I: the
  ! vectors v(i) have `nonzeros` random elements, and 1/2 in place i; weights fall from 1 to
  ! `condition`.
  subroutine make_matrix()
    integer, allocatable :: place(:, :), length(:), next(:), vector(:), entry(:)
    real(dp), allocatable :: v(:, :)
    integer :: i, k

    allocate (place(nonzeros + 1, n), v(nonzeros + 1, n), length(n))
    call make_vectors(place, v, length)
    ! For each of the block's rows, in which vectors it occurs, and where.
    allocate (next(rows + 1))
    next = 0
    do i = 1, n
      do k = 1, length(i)
        if (here(place(k, i))) next(place(k, i) - top + 1) = next(place(k, i) - top + 1) + 1
      end do
    end do
    next(1) = 1
    do i = 1, rows
      next(i + 1) = next(i + 1) + next(i)
    end do
    allocate (vector(next(rows + 1) - 1), entry(next(rows + 1) - 1))
    do i = 1, n
      do k = 1, length(i)
        if (.not. here(place(k, i))) cycle
        vector(next(place(k, i) - top)) = i
        entry(next(place(k, i) - top)) = k
        next(place(k, i) - top) = next(place(k, i) - top) + 1
      end do
    end do
    call add_up(place, v, length, [1, next(:rows)], vector, entry)
  end subroutine

  ! Is this row of the matrix in the block?
  pure logical function here(i)
    integer, intent(in) :: i
    here = i > top .and. i <= top + rows
  end function

  ! Makes all vectors: pairs of random numbers are an element's value, and its place among the
  ! smallest power of two that is not below n; places beyond n, or that are taken, do not count.
  subroutine make_vectors(place, v, length)
    integer, intent(out) :: place(:, :), length(:)
    real(dp), intent(out) :: v(:, :)
    integer(int64) :: state
    real(dp) :: pair(2)
    integer :: i, k, at, power

    power = 1
    do while (power < n)
      power = 2 * power
    end do
    state = ahead(seed, 1_int64)
    do i = 1, n
      k = 0
      do while (k < nonzeros)
        call fill(state, pair)
        at = int(power * pair(2)) + 1
        if (at > n .or. any(place(:k, i) == at)) cycle
        k = k + 1
        place(k, i) = at
        v(k, i) = pair(1)
      end do
      at = findloc(place(:k, i), i, 1)
      if (at == 0) then
        k = k + 1
        at = k
      end if
      place(at, i) = i
      v(at, i) = 0.5_dp
      length(i) = k
    end do
  end subroutine

  ! Adds up the block's elements, row by row, in a full row. Row i occurs in the vectors
  ! vector(from(i):from(i + 1) - 1), as their element entry(...).
  subroutine add_up(place, v, length, from, vector, entry)
    integer, intent(in) :: place(:, :), length(:), from(:), vector(:), entry(:)
    real(dp), intent(in) :: v(:, :)
    real(dp) :: full(columns), weight
    integer :: found(columns), c, i, j, k, l, many, size
    logical :: taken(columns)

    size = 0
    do l = 1, from(rows + 1) - 1
      size = size + length(vector(l))
    end do
    allocate (begin_of(rows + 1), column_of(size), element(size))
    taken = .false.
    begin_of(1) = 1
    do i = 1, rows
      many = 0
      do l = from(i), from(i + 1) - 1
        j = vector(l)
        weight = condition**(real(j - 1, dp) / n) * v(entry(l), j)
        do k = 1, length(j)
          c = place(k, j) - left
          if (c < 1 .or. c > columns) cycle
          if (.not. taken(c)) then
            taken(c) = .true.
            full(c) = 0
            many = many + 1
            found(many) = c
          end if
          full(c) = full(c) + weight * v(k, j)
        end do
      end do
      c = top + i - left                                  ! the diagonal is in vector top + i
      if (c >= 1 .and. c <= columns) full(c) = full(c) + condition - shift
      begin_of(i + 1) = begin_of(i) + many
      column_of(begin_of(i):begin_of(i + 1) - 1) = found(:many)
      element(begin_of(i):begin_of(i + 1) - 1) = full(found(:many))
      taken(found(:many)) = .false.
    end do
  end subroutine

  ! z becomes an approximate solution of A z = x, after 25 steps of conjugate gradients from 0.
  subroutine solve()
    real(dp) :: rho, before, alpha
    integer :: step
    z = 0
    r = x
    p = r
    rho = inner(r, r)
    do step = 1, steps
      call multiply()
      alpha = rho / inner(p, q)
      z = z + alpha * p
      r = r - alpha * q
      before = rho
      rho = inner(r, r)
      p = r + rho / before * p
    end do
  end subroutine

  ! q = A p.
  subroutine multiply()
    type(MPI_Request) :: request
    integer :: i, k
    real(dp) :: sum
    do i = 1, rows
      sum = 0
      do k = begin_of(i), begin_of(i + 1) - 1
        sum = sum + element(k) * p(column_of(k))
      end do
      product(i) = sum
    end do
    call add_along_row(product, other)
    if (transposed == rank) then
      q = product(part:part + part_size - 1)
    else
      call MPI_Irecv(q, columns, MPI_DOUBLE_PRECISION, transposed, 1, MPI_COMM_WORLD, request)
      call MPI_Send(product(part:part + part_size - 1), part_size, MPI_DOUBLE_PRECISION, transposed, 1, &
        MPI_COMM_WORLD)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
    end if
  end subroutine

  ! The inner product of two vectors, the same bits on all ranks of a row.
  real(dp) function inner(one, two)
    real(dp), intent(in) :: one(:), two(:)
    real(dp), asynchronous :: sum(1), room(1)
    sum = dot_product(one, two)
    call add_along_row(sum, room)
    inner = sum(1)
  end function

  ! Adds the values of all ranks in a row of the grid: in each stage with the rank at twice the
  ! distance, so that all have the sum after log2(columns) stages.
  subroutine add_along_row(values, theirs)
    real(dp), intent(inout), contiguous, asynchronous :: values(:), theirs(:)
    type(MPI_Request) :: request
    integer :: stage
    do stage = 1, stages
      call MPI_Irecv(theirs, size(values), MPI_DOUBLE_PRECISION, partners(stage), 2, MPI_COMM_WORLD, request)
      call MPI_Send(values, size(values), MPI_DOUBLE_PRECISION, partners(stage), 2, MPI_COMM_WORLD)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      values = values + theirs
    end do
  end subroutine
end program
