! transforms: the transforms of pstswm against what they must be. Takes pstswm's options.
program transforms
  use mpi_f08
  use sphere, only: dp, pi, gauss
  use fft
  use options, only: read_options, truncation, latitudes, levels
  use mesh, only: make_mesh, world, rank, ranks, lons, lats
  use legendre
  use transform
  implicit none
  real(dp), parameter :: limit = 1d-12
  character(len=:), allocatable :: problem
  logical :: asks_help, wrong = .false.
  real(dp), allocatable, target :: state(:, :, :, :)

  call MPI_Init()
  call read_options(problem, asks_help)
  if (problem == '') call make_mesh(problem)
  if (problem /= '') error stop problem
  call make_legendre()
  call make_transform()
  allocate (state(2, levels, variables, first_mine:last_place))
  call make_sums(state)
  call check('FFT against its definition', fft_error())
  call check('quadrature of a polynomial', quadrature_error())
  if (ranks == 1) call check('orthogonality of P', orthogonality_error())
  call check('coefficients to grid and back', round_trip_error())
  call MPI_Finalize()
  if (wrong) stop 1, quiet=.true.

contains

  subroutine check(what, error)
    character(len=*), intent(in) :: what
    real(dp), intent(in) :: error
    call MPI_Allreduce(MPI_IN_PLACE, error, 1, MPI_DOUBLE_PRECISION, MPI_MAX, world)
    if (rank == 0) print '(a, es9.1)', what, error
    if (.not. error <= limit) wrong = .true.
  end subroutine

  ! Two lines at once, of every length up to 64 that has no other factors than 2, 3 and 5.
  real(dp) function fft_error()
    integer, parameter :: lines = 2
    type(fft_plan) :: plan
    logical :: possible
    complex(dp), allocatable :: exact(:, :)
    real(dp), allocatable :: x(:, :, :), work(:, :, :), start(:, :, :)
    integer :: n, sign, j, k
    fft_error = 0
    do n = 1, 64
      call fft_make(n, plan, possible)
      if (.not. possible) cycle
      allocate (x(2, lines, 0:n - 1), work(2, lines, 0:n - 1), exact(lines, 0:n - 1))
      call random_number(x)
      start = x
      do sign = -1, 1, 2
        x = start
        exact = 0
        do k = 0, n - 1
          do j = 0, n - 1
            exact(:, k) = exact(:, k) + cmplx(x(1, :, j), x(2, :, j), dp) &
              * exp(cmplx(0, sign * 2 * pi * mod(j * k, n) / n, dp))
          end do
        end do
        call fft_run(plan, sign, lines, x, work)
        fft_error = max(fft_error, maxval(abs(cmplx(x(1, :, :), x(2, :, :), dp) - exact)) / n)
      end do
      deallocate (x, work, exact, start)
    end do
    call fft_make(14, plan, possible)
    if (possible) fft_error = 1
  end function

  ! n nodes integrate mu^(2 n - 2) exactly.
  real(dp) function quadrature_error()
    real(dp) :: node(latitudes / 2), w(latitudes / 2)
    call gauss(node, w)
    quadrature_error = max(abs(sum(w) - 1), &
      abs((2 * latitudes - 1) * sum(w * node**(2 * latitudes - 2)) - 1))
  end function

  ! Functions of the same m and parity; those of different parity are orthogonal by symmetry.
  real(dp) function orthogonality_error()
    integer :: c, d
    orthogonality_error = 0
    do c = 1, coefficients
      do d = 1, coefficients
        if (m_of(d) /= m_of(c) .or. mod(n_of(d) - n_of(c), 2) /= 0) cycle
        orthogonality_error = max(orthogonality_error, &
          abs(2 * sum(weight * p(c, :) * p(d, :)) - merge(1, 0, c == d)))
      end do
    end do
  end function

  ! Random coefficients to the grid. There the wind's curl and divergence, and the geopotential's
  ! Laplacian, must be those of the coefficients.
  real(dp) function round_trip_error()
    real(dp), allocatable :: start(:, :, :, :), there(:, :, :, :), back(:, :, :, :)
    real(dp), allocatable, target :: g(:, :, :), h(:, :, :)
    integer :: i
    allocate (start(2, levels, variables, first_mine:last_mine))
    allocate (there, back, mold=start)
    allocate (g(levels * fields, lons, lats), h(levels * products, lons, lats))
    call random_number(start)
    do i = first_mine, last_mine
      if (m_of(i) == 0) start(2, :, :, i) = 0
      if (n_of(i) == 0) start(:, :, divergence:vorticity, i) = 0
    end do
    call to_fields(start, g)
    h = 0
    h((a_ - 1) * levels + 1:a_ * levels, :, :) = -g((v_ - 1) * levels + 1:v_ * levels, :, :)
    h((b_ - 1) * levels + 1:b_ * levels, :, :) = g((u_ - 1) * levels + 1:u_ * levels, :, :)
    call to_tendencies(h)
    back = tendencies
    h = 0
    h((e_ - 1) * levels + 1:e_ * levels, :, :) = g((phi_ - 1) * levels + 1:phi_ * levels, :, :)
    call to_tendencies(h)
    there = tendencies
    round_trip_error = 0
    do i = first_mine, last_mine
      round_trip_error = max(round_trip_error, &
        maxval(abs(back(:, :, divergence:vorticity, i) - start(:, :, divergence:vorticity, i))))
      if (n_of(i) == 0) cycle
      round_trip_error = max(round_trip_error, &
        maxval(abs(there(:, :, divergence, i) / laplacian(i) - start(:, :, geopotential, i))))
    end do
  end function
end program
