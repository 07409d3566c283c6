! lu: the equations of compressible viscous flow in a cube, by symmetric successive over-relaxation.
!
!   make apps && dist/bin/mpiexec -n 4 build/apps/lu W
!
! The equations L(u) = L(u*) are those of module flow. In each iteration the residual
! r = dt (L(u) - L(u*)) is swept twice: upwards, each point after its lower neighbours in x, y and
! z, then downwards; a 5 x 5 block of the linearized equations couples two neighbours.
!
! Ranks cut x and y; every rank has all z. A sweep goes through the planes of z as a wave: for each
! plane a rank waits for the edges of its lower neighbours in x and y, computes, and sends its own
! edges on (MPI_Recv and MPI_Send of one to three KB), so that neighbours work on neighbouring
! planes. After each iteration, u is exchanged two points deep, for L. Any number of ranks that
! leaves each three points a dimension.
program lu
  use mpi_f08
  use nas
  use flow
  implicit none
  real(dp), parameter :: omega = 1.2_dp, counts(4) = [-144010._dp, 27770.9_dp, -10923.3_dp, 1984.77_dp]
  type(MPI_Comm) :: plane                                 ! the ranks, by y and x
  integer :: mx, my, x0, y0                               ! points of this rank, and before it
  integer :: i0, i1, j0, j1                               ! those of them that are not a face's
  integer :: west, east, south, north                     ! ranks with smaller and greater x; y
  type(MPI_Datatype) :: edge(4), halo(4)                  ! two points deep: west, east, south, north
  real(dp), allocatable, asynchronous :: u(:, :, :, :), r(:, :, :, :)
  real(dp), allocatable :: force(:, :, :, :)              ! L(u*)
  real(dp) :: residual(5), begin, seconds
  character(2) :: class
  integer :: iteration

  class = start("lu", ["S", "W", "A"])
  select case (class)
  case ("W")
    call set_problem(33, 300, 1.5e-3_dp, &
      [0.1236511638192e+02_dp, 0.1317228477799e+01_dp, 0.2550120713095e+01_dp, &
       0.2326187750252e+01_dp, 0.2826799444189e+02_dp], &
      [0.4867877144216e+00_dp, 0.5064652880982e-01_dp, 0.9281818101960e-01_dp, &
       0.8570126542733e-01_dp, 0.1084277417792e+01_dp])
  case ("A")
    call set_problem(64, 250, 2._dp, &
      [7.7902107606689367e+02_dp, 6.3402765259692870e+01_dp, 1.9499249727292479e+02_dp, &
       1.7845301160418537e+02_dp, 1.8384760349464247e+03_dp], &
      [2.9964085685471943e+01_dp, 2.8194576365003349e+00_dp, 7.3473412698774742e+00_dp, &
       6.7139225687777051e+00_dp, 7.0715315688392578e+01_dp])
  case default
    call set_problem(12, 50, 0.5_dp, &
      [1.6196343210976702e-02_dp, 2.1976745164821318e-03_dp, 1.5179927653399185e-03_dp, &
       1.5029584435994323e-03_dp, 3.4264073155896461e-02_dp], &
      [6.4223319957960924e-04_dp, 8.4144342047347926e-05_dp, 5.8588269616485186e-05_dp, &
       5.8474222595157350e-05_dp, 1.3103347914111294e-03_dp])
  end select
  call place_ranks()
  call make_edges()
  allocate (u(5, -1:mx + 2, -1:my + 2, n), r(5, 0:mx + 1, 0:my + 1, n), force(5, mx, my, n))
  call set_force()
  call set_initial()
  call apply()
  call one_iteration()   ! not timed: memory and connections come into being
  call set_initial()
  call apply()

  begin = stopwatch()
  do iteration = 1, iterations
    call one_iteration()
  end do
  seconds = MPI_Wtime() - begin
  residual = norms(r(:, 1:mx, 1:my, :))
  call subtract_exact()
  call finish_flow("LU class "//trim(class), seconds, counts, residual, norms(u(:, 1:mx, 1:my, :)))

contains

  subroutine place_ranks()
    integer :: dims(2), place(2)
    dims = 0
    call MPI_Dims_create(ranks, 2, dims)
    if (3 * maxval(dims) > n) call give_up("lu has too few points in this class for this many ranks")
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.false., .false.], .false., plane)
    call MPI_Cart_coords(plane, rank, 2, place)
    call MPI_Cart_shift(plane, 0, 1, south, north)        ! MPI_PROC_NULL at the faces
    call MPI_Cart_shift(plane, 1, 1, west, east)
    y0 = first(place(1), dims(1), n) - 1
    my = first(place(1) + 1, dims(1), n) - 1 - y0
    x0 = first(place(2), dims(2), n) - 1
    mx = first(place(2) + 1, dims(2), n) - 1 - x0
    i0 = max(1, 2 - x0)
    i1 = min(mx, n - 1 - x0)
    j0 = max(1, 2 - y0)
    j1 = min(my, n - 1 - y0)
  end subroutine

  ! The datatypes of what is exchanged of u.
  subroutine make_edges()
    call make_edge([2, my], [1, 1], edge(1))
    call make_edge([2, my], [mx - 1, 1], edge(2))
    call make_edge([mx, 2], [1, 1], edge(3))
    call make_edge([mx, 2], [1, my - 1], edge(4))
    call make_edge([2, my], [-1, 1], halo(1))
    call make_edge([2, my], [mx + 1, 1], halo(2))
    call make_edge([mx, 2], [1, -1], halo(3))
    call make_edge([mx, 2], [1, my + 1], halo(4))
  end subroutine

  ! Points at(1), at(2) and on, in all planes.
  subroutine make_edge(points, at, type)
    integer, intent(in) :: points(2), at(2)
    type(MPI_Datatype), intent(out) :: type
    call MPI_Type_create_subarray(4, [5, mx + 4, my + 4, n], [5, points, n], [0, at + 1, 0], MPI_ORDER_FORTRAN, &
      MPI_DOUBLE_PRECISION, type)
    call MPI_Type_commit(type)
  end subroutine

  subroutine exchange()
    type(MPI_Request) :: request(8)
    integer :: who(4), side, back
    who = [west, east, south, north]
    do side = 1, 4
      call MPI_Irecv(u, 1, halo(side), who(side), side, plane, request(side))
    end do
    do side = 1, 4
      back = merge(side + 1, side - 1, mod(side, 2) == 1) ! our west edge is their east halo
      call MPI_Isend(u, 1, edge(side), who(side), back, plane, request(4 + side))
    end do
    call MPI_Waitall(8, request, MPI_STATUSES_IGNORE)
  end subroutine

  subroutine set_initial()
    integer :: i, j, k
    do k = 1, n
      do j = 1, my
        do i = 1, mx
          u(:, i, j, k) = initial(x0 + i, y0 + j, k)
        end do
      end do
    end do
    call exchange()
  end subroutine

  ! force = L(u*).
  subroutine set_force()
    integer :: i, j, k
    do k = 1, n
      do j = -1, my + 2
        do i = -1, mx + 2
          u(:, i, j, k) = exact(x0 + i, y0 + j, k)
        end do
      end do
    end do
    force = 0
    call apply()
    force = r(:, 1:mx, 1:my, :)
  end subroutine

  ! r = L(u) - force, and 0 on the faces.
  subroutine apply()
    integer :: i, j, k
    r = 0
    r(:, 1:mx, 1:my, :) = -force
    do k = 2, n - 1
      do j = j0, j1
        call along(1, mx, x0, u(:, :, j, k), r(:, 1:mx, j, k))
      end do
      do i = i0, i1
        call along(2, my, y0, u(:, i, :, k), r(:, i, 1:my, k))
      end do
    end do
    do j = j0, j1
      do i = i0, i1
        call along_z(u(:, i, j, :), r(:, i, j, :))
      end do
    end do
  end subroutine

  ! A line in z, which has no neighbours.
  subroutine along_z(line, sum)
    real(dp), intent(in) :: line(:, :)
    real(dp), intent(inout) :: sum(:, :)
    real(dp) :: wide(5, -1:n + 2)
    wide(:, 1:n) = line
    call along(3, n, 0, wide, sum)
  end subroutine

  ! Both sweeps, the new u, and its residual.
  subroutine one_iteration()
    r = dt * r
    call sweep_up()
    call sweep_down()
    u(:, i0:i1, j0:j1, 2:n - 1) = u(:, i0:i1, j0:j1, 2:n - 1) &
      + r(:, i0:i1, j0:j1, 2:n - 1) / (omega * (2 - omega))
    call exchange()
    call apply()
  end subroutine

  ! Solves (D + omega (lower blocks)) r = r.
  subroutine sweep_up()
    real(dp) :: sum(5)
    integer :: i, j, k
    do k = 2, n - 1
      call MPI_Recv(r(:, 0, 1:my, k), 5 * my, MPI_DOUBLE_PRECISION, west, 5, plane, MPI_STATUS_IGNORE)
      call MPI_Recv(r(:, 1:mx, 0, k), 5 * mx, MPI_DOUBLE_PRECISION, south, 6, plane, MPI_STATUS_IGNORE)
      do j = j0, j1
        do i = i0, i1
          sum = 0
          call add_block(3, -1._dp, u(:, i, j, k - 1), r(:, i, j, k - 1), sum)
          call add_block(2, -1._dp, u(:, i, j - 1, k), r(:, i, j - 1, k), sum)
          call add_block(1, -1._dp, u(:, i - 1, j, k), r(:, i - 1, j, k), sum)
          sum = r(:, i, j, k) - omega * sum
          call solve(u(:, i, j, k), sum)
          r(:, i, j, k) = sum
        end do
      end do
      call MPI_Send(r(:, mx, 1:my, k), 5 * my, MPI_DOUBLE_PRECISION, east, 5, plane)
      call MPI_Send(r(:, 1:mx, my, k), 5 * mx, MPI_DOUBLE_PRECISION, north, 6, plane)
    end do
  end subroutine

  ! Solves (D + omega (upper blocks)) r' = D r.
  subroutine sweep_down()
    real(dp) :: sum(5)
    integer :: i, j, k
    do k = n - 1, 2, -1
      call MPI_Recv(r(:, mx + 1, 1:my, k), 5 * my, MPI_DOUBLE_PRECISION, east, 7, plane, MPI_STATUS_IGNORE)
      call MPI_Recv(r(:, 1:mx, my + 1, k), 5 * mx, MPI_DOUBLE_PRECISION, north, 8, plane, MPI_STATUS_IGNORE)
      do j = j1, j0, -1
        do i = i1, i0, -1
          sum = 0
          call add_block(3, 1._dp, u(:, i, j, k + 1), r(:, i, j, k + 1), sum)
          call add_block(2, 1._dp, u(:, i, j + 1, k), r(:, i, j + 1, k), sum)
          call add_block(1, 1._dp, u(:, i + 1, j, k), r(:, i + 1, j, k), sum)
          call solve(u(:, i, j, k), sum)
          r(:, i, j, k) = r(:, i, j, k) - omega * sum
        end do
      end do
      call MPI_Send(r(:, 1, 1:my, k), 5 * my, MPI_DOUBLE_PRECISION, west, 7, plane)
      call MPI_Send(r(:, 1:mx, 1, k), 5 * mx, MPI_DOUBLE_PRECISION, south, 8, plane)
    end do
  end subroutine

  ! Adds to `sum` what the block of a neighbour in dimension d (side -1 or 1), which has u, makes of
  ! v: dt (side t2 (flux)' - t1 c34 (rates)' - t1 second) v, where ' are derivatives by u.
  pure subroutine add_block(d, side, u, v, sum)
    integer, intent(in) :: d
    real(dp), intent(in) :: side, u(5), v(5)
    real(dp), intent(inout) :: sum(5)
    real(dp) :: w(3), dw(3), density, kinetic, product, pressure, dflux(5), drates(5)
    density = 1 / u(1)
    w = u(2:4) * density
    dw = (v(2:4) - w * v(1)) * density                    ! the change of the velocities
    kinetic = 0.5_dp * dot_product(w, w)
    product = dot_product(w, v(2:4))
    pressure = c2 * (v(5) - product + kinetic * v(1))     ! of the pressure
    dflux(1) = v(1 + d)
    dflux(2:4) = v(2:4) * w(d) + u(2:4) * dw(d)
    dflux(1 + d) = dflux(1 + d) + pressure
    dflux(5) = (v(5) + pressure) * w(d) + (u(5) + c2 * (u(5) - kinetic * u(1))) * dw(d)
    call derivative_of_rates(d, density, w, dw, u(5), v, drates)
    sum = sum + dt * (side * t2 * dflux - t1 * c34 * drates - t1 * second(d) * v)
  end subroutine

  ! The derivative of `rates` by u, times v.
  pure subroutine derivative_of_rates(d, density, w, dw, energy, v, drates)
    integer, intent(in) :: d
    real(dp), intent(in) :: density, w(3), dw(3), energy, v(5)
    real(dp), intent(out) :: drates(5)
    drates(1) = 0
    drates(2:4) = dw
    drates(1 + d) = 4 * dw(d) / 3
    drates(5) = (1 - c15) * dot_product(w, dw) + w(d) * dw(d) / 3 + c15 * density * (v(5) - energy * density * v(1))
  end subroutine

  ! v = D^-1 v. D, the block of a point, is the same in all dimensions: 1 + 2 dt t1 (second, summed,
  ! and c34 (rates)', summed). It has a simple form: density alone in its row, each momentum with
  ! density, and energy with all.
  pure subroutine solve(u, v)
    real(dp), intent(in) :: u(5)
    real(dp), intent(inout) :: v(5)
    real(dp) :: one, by(3), density, w(3), dw(3), a
    integer :: d
    density = 1 / u(1)
    w = u(2:4) * density
    a = 2 * dt * t1 * c34
    one = 1 + 2 * dt * t1 * sum(second)
    by = one + a * density * (3 + 1 / 3._dp)              ! twice 1 and once 4/3
    v(1) = v(1) / one
    do d = 1, 3
      v(1 + d) = (v(1 + d) + a * density * (3 + 1 / 3._dp) * w(d) * v(1)) / by(d)
    end do
    dw = (v(2:4) - w * v(1)) * density
    v(5) = v(5) - a * ((3 * (1 - c15) + 1 / 3._dp) * dot_product(w, dw) - 3 * c15 * density**2 * u(5) * v(1))
    v(5) = v(5) / (one + 3 * a * c15 * density)
  end subroutine

  ! u = u - u*.
  subroutine subtract_exact()
    integer :: i, j, k
    do k = 1, n
      do j = 1, my
        do i = 1, mx
          u(:, i, j, k) = u(:, i, j, k) - exact(x0 + i, y0 + j, k)
        end do
      end do
    end do
  end subroutine

  ! The roots of the mean squares over all points that are not a face's.
  function norms(values)
    real(dp), intent(in) :: values(:, :, :, :)
    real(dp) :: norms(5)
    integer :: m
    do m = 1, 5
      norms(m) = sum(values(m, i0:i1, j0:j1, 2:n - 1)**2)
    end do
    call MPI_Allreduce(MPI_IN_PLACE, norms, 5, MPI_DOUBLE_PRECISION, MPI_SUM, plane)
    norms = sqrt(norms / real(n - 2, dp)**3)
  end function
end program
