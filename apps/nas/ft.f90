! ft: a partial differential equation, by fast Fourier transforms in three dimensions.
!
!   make apps && dist/bin/mpiexec -n 4 build/apps/ft W
!
! The heat equation du/dt = alpha (Laplacian of u) on a periodic box: transformed, each wave number
! k only fades, by exp(-4 alpha pi^2 |k|^2) a time step. So random initial values are transformed
! once; in each of six steps, waves fade, the inverse transform gives u, and a checksum of 1024
! of its points is compared with the published one.
!
! Ranks have slabs: x and y whole, z cut. Transforms in x and y stay on the rank. For those in z the
! array is transposed: each rank sends every other a block, by one MPI_Alltoall that moves the whole
! array, and has z and y whole then, and x cut. The number of ranks must divide both, so it is a
! power of two.
program ft
  use mpi_f08
  use nas
  implicit none
  integer, parameter :: steps = 6, points = 1024, width = 16
  real(dp), parameter :: alpha = 1e-6_dp, pi = acos(-1._dp), tolerance = 1e-12_dp
  integer :: nx, ny, nz, mx, mz                           ! the box; a rank's share of x and of z
  complex(dp) :: published(steps), sums(steps)
  complex(dp), allocatable :: u(:, :, :)                  ! (x, y, my z)
  complex(dp), allocatable :: waves(:, :, :), faded(:, :, :) ! (z, y, my x)
  complex(dp), allocatable :: out(:), in(:)               ! what is sent and received
  real(dp), allocatable :: fade_x(:), fade_y(:), fade_z(:)! a wave number's factors, by dimension
  complex(dp), allocatable :: roots_x(:), roots_y(:), roots_z(:)
  real(dp) :: begin, seconds, total, flops
  character(2) :: class
  character(48) :: problem
  integer :: step

  class = start("ft", ["S", "W", "A"])
  call set_problem()
  mx = nx / ranks
  mz = nz / ranks
  if (mx * ranks /= nx .or. mz * ranks /= nz) &
    call give_up("ft goes on a number of ranks that is a power of two, "// &
      "and no more than the box has points in x and in z")
  allocate (u(nx, ny, mz), waves(nz, ny, mx), faded(nz, ny, mx), out(nx * ny * mz), in(nx * ny * mz))
  call set_tables()
  u = 0
  call forward()    ! not timed: memory and connections come into being

  begin = stopwatch()
  call set_random()
  call forward()
  do step = 1, steps
    call fade()
    call backward()
    sums(step) = checksum()
  end do
  seconds = MPI_Wtime() - begin

  total = real(nx, dp) * ny * nz
  flops = total * (14.8157_dp + 7.19641_dp * log(total) + (5.23518_dp + 7.21113_dp * log(total)) * steps)
  if (rank == 0) then
    do step = 1, steps
      print '("checksum ", i0, 2es21.12, ", should be", 2es21.12)', step, sums(step), published(step)
    end do
  end if
  write (problem, '("FT class ", a, ": ", 2(i0, " x "), i0, " points")') trim(class), nx, ny, nz
  call finish(trim(problem), seconds, flops, &
    agrees([sums%re, sums%im], [published%re, published%im], tolerance))

contains

  subroutine set_problem()
    select case (class)
    case ("W")
      nx = 128; ny = 128; nz = 32
      published = [(5.673612178944e+02_dp, 5.293246849175e+02_dp), (5.631436885271e+02_dp, 5.282149986629e+02_dp), &
                   (5.594024089970e+02_dp, 5.270996558037e+02_dp), (5.560698047020e+02_dp, 5.260027904925e+02_dp), &
                   (5.530898991250e+02_dp, 5.249400845633e+02_dp), (5.504159734538e+02_dp, 5.239212247086e+02_dp)]
    case ("A")
      nx = 256; ny = 256; nz = 128
      published = [(5.046735008193e+02_dp, 5.114047905510e+02_dp), (5.059412319734e+02_dp, 5.098809666433e+02_dp), &
                   (5.069376896287e+02_dp, 5.098144042213e+02_dp), (5.077892868474e+02_dp, 5.101336130759e+02_dp), &
                   (5.085233095391e+02_dp, 5.104914655194e+02_dp), (5.091487099959e+02_dp, 5.107917842803e+02_dp)]
    case default
      nx = 64; ny = 64; nz = 64
      published = [(5.546087004964e+02_dp, 4.845363331978e+02_dp), (5.546385409189e+02_dp, 4.865304269511e+02_dp), &
                   (5.546148406171e+02_dp, 4.883910722336e+02_dp), (5.545423607415e+02_dp, 4.901273169046e+02_dp), &
                   (5.544255039624e+02_dp, 4.917475857993e+02_dp), (5.542683411902e+02_dp, 4.932597244941e+02_dp)]
    end select
  end subroutine

  subroutine set_tables()
    fade_x = factors(nx)
    fade_y = factors(ny)
    fade_z = factors(nz)
    roots_x = roots(nx)
    roots_y = roots(ny)
    roots_z = roots(nz)
  end subroutine

  ! By what the waves of n points fade in a step: exp(-4 alpha pi^2 k^2), k from -n/2 to n/2 - 1 in
  ! the order of the transform.
  pure function factors(n)
    integer, intent(in) :: n
    real(dp) :: factors(n)
    integer :: i
    factors = [(exp(-4 * alpha * pi**2 * (mod(i + n / 2, n) - n / 2)**2), i=0, n - 1)]
  end function

  ! The n-th roots of 1 that a transform of n points needs: exp(-2 pi i j / n).
  pure function roots(n)
    integer, intent(in) :: n
    complex(dp) :: roots(0:n / 2 - 1)
    integer :: j
    roots = [(exp(cmplx(0, -2 * pi * j / n, dp)), j=0, n / 2 - 1)]
  end function

  ! Random initial values: pairs of real and imaginary parts, x fastest; each rank jumps to its
  ! slab.
  subroutine set_random()
    integer(int64) :: state
    real(dp) :: pairs(2 * nx)
    integer :: j, k
    state = ahead(seed, 2_int64 * nx * ny * mz * rank)
    do k = 1, mz
      do j = 1, ny
        call fill(state, pairs)
        u(:, j, k) = cmplx(pairs(1::2), pairs(2::2), dp)
      end do
    end do
  end subroutine

  ! waves = the transform of u.
  subroutine forward()
    integer :: k
    do k = 1, mz
      call transform_first(u(:, :, k), roots_x)
      call transform_second(u(:, :, k), roots_y)
    end do
    call z_whole(waves)
    do k = 1, mx
      call transform_first(waves(:, :, k), roots_z)
    end do
  end subroutine

  ! One time step of the waves.
  subroutine fade()
    integer :: i, j
    do i = 1, mx
      do j = 1, ny
        waves(:, j, i) = waves(:, j, i) * (fade_x(mx * rank + i) * fade_y(j) * fade_z)
      end do
    end do
  end subroutine

  ! u = the inverse transform of the waves, which stay; it is not divided by the number of points.
  subroutine backward()
    integer :: k
    do k = 1, mx
      faded(:, :, k) = waves(:, :, k)
      call transform_first(faded(:, :, k), conjg(roots_z))
    end do
    call x_whole(faded)
    do k = 1, mz
      call transform_second(u(:, :, k), conjg(roots_y))
      call transform_first(u(:, :, k), conjg(roots_x))
    end do
  end subroutine

  ! Transposes u into an array with z whole. A block for a rank has its x, all y and our z.
  subroutine z_whole(w)
    complex(dp), intent(out) :: w(:, :, :)
    call pack_slabs()
    call everyone_to_everyone()
    call unpack_columns(w, in)
  end subroutine

  ! The other way round.
  subroutine x_whole(w)
    complex(dp), intent(in) :: w(:, :, :)
    call pack_columns(w, out)
    call everyone_to_everyone()
    call unpack_slabs()
  end subroutine

  subroutine everyone_to_everyone()
    integer :: block
    block = mx * ny * mz
    call MPI_Alltoall(out, block, MPI_DOUBLE_COMPLEX, in, block, MPI_DOUBLE_COMPLEX, MPI_COMM_WORLD)
  end subroutine

  ! Blocks lie one after another: (x, y, z) of the rank that has those x.
  subroutine pack_slabs()
    integer :: one, j, k, at
    at = 0
    do one = 0, ranks - 1
      do k = 1, mz
        do j = 1, ny
          out(at + 1:at + mx) = u(one * mx + 1:one * mx + mx, j, k)
          at = at + mx
        end do
      end do
    end do
  end subroutine

  subroutine unpack_slabs()
    integer :: one, j, k, at
    at = 0
    do one = 0, ranks - 1
      do k = 1, mz
        do j = 1, ny
          u(one * mx + 1:one * mx + mx, j, k) = in(at + 1:at + mx)
          at = at + mx
        end do
      end do
    end do
  end subroutine

  ! The same blocks from the other side: the z of each rank, one rank after another.
  subroutine unpack_columns(w, blocks)
    complex(dp), intent(inout) :: w(:, :, :)
    complex(dp), intent(in) :: blocks(mx, ny, mz, 0:ranks - 1)
    integer :: one, i, j
    do one = 0, ranks - 1
      do j = 1, ny
        do i = 1, mx
          w(one * mz + 1:one * mz + mz, j, i) = blocks(i, j, :, one)
        end do
      end do
    end do
  end subroutine

  subroutine pack_columns(w, blocks)
    complex(dp), intent(in) :: w(:, :, :)
    complex(dp), intent(out) :: blocks(mx, ny, mz, 0:ranks - 1)
    integer :: one, i, j
    do one = 0, ranks - 1
      do j = 1, ny
        do i = 1, mx
          blocks(i, j, :, one) = w(one * mz + 1:one * mz + mz, j, i)
        end do
      end do
    end do
  end subroutine

  ! Transforms each column of a plane; `width` at once, side by side, so that they are vectors.
  subroutine transform_first(plane, root)
    complex(dp), intent(inout) :: plane(:, :)
    complex(dp), intent(in) :: root(0:)
    complex(dp) :: lines(width, 0:size(plane, 1) - 1), room(width, 0:size(plane, 1) - 1)
    integer :: j
    do j = 1, size(plane, 2), width
      lines = transpose(plane(:, j:j + width - 1))
      call transform(size(plane, 1), root, lines, room)
      plane(:, j:j + width - 1) = transpose(lines)
    end do
  end subroutine

  ! Transforms each row of a plane.
  subroutine transform_second(plane, root)
    complex(dp), intent(inout) :: plane(:, :)
    complex(dp), intent(in) :: root(0:)
    complex(dp) :: lines(width, 0:size(plane, 2) - 1), room(width, 0:size(plane, 2) - 1)
    integer :: i
    do i = 1, size(plane, 1), width
      lines = plane(i:i + width - 1, :)
      call transform(size(plane, 2), root, lines, room)
      plane(i:i + width - 1, :) = lines
    end do
  end subroutine

  ! The transform of `width` lines of n points, n a power of two, by Stockham's algorithm: in each
  ! stage, transforms of half as many points are joined in pairs, from one array into the other,
  ! which leaves everything in order at the end. `root` are the n-th roots of 1, those of the
  ! inverse transform for the inverse.
  subroutine transform(n, root, x, y)
    integer, intent(in) :: n
    complex(dp), intent(in) :: root(0:)
    complex(dp), intent(inout) :: x(width, 0:n - 1), y(width, 0:n - 1)
    integer :: joined
    logical :: in_x
    joined = 1                                            ! points of the transforms so far
    in_x = .true.
    do while (joined < n)
      if (in_x) then
        call join(n, joined, root, x, y)
      else
        call join(n, joined, root, y, x)
      end if
      in_x = .not. in_x
      joined = 2 * joined
    end do
    if (.not. in_x) x = y
  end subroutine

  ! One stage, of Van Loan, Computational Frameworks for the Fast Fourier Transform, algorithm
  ! 1.7.1.
  subroutine join(n, joined, root, from, to)
    integer, intent(in) :: n, joined
    complex(dp), intent(in) :: root(0:), from(width, 0:n - 1)
    complex(dp), intent(out) :: to(width, 0:n - 1)
    complex(dp) :: turned(width)
    integer :: j, k, apart
    apart = n / (2 * joined)
    do j = 0, joined - 1
      do k = 0, apart - 1
        turned = root(j * apart) * from(:, 2 * j * apart + k + apart)
        to(:, j * apart + k) = from(:, 2 * j * apart + k) + turned
        to(:, (j + joined) * apart + k) = from(:, 2 * j * apart + k) - turned
      end do
    end do
  end subroutine

  ! The sum of u in the points (j, 3 j, 5 j), each modulo the box, over the number of points.
  complex(dp) function checksum()
    integer :: j, z
    checksum = 0
    do j = 1, points
      z = mod(5 * j, nz) - mz * rank
      if (z >= 0 .and. z < mz) checksum = checksum + u(mod(j, nx) + 1, mod(3 * j, ny) + 1, z + 1)
    end do
    call MPI_Allreduce(MPI_IN_PLACE, checksum, 1, MPI_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD)
    checksum = checksum / (real(nx, dp) * ny * nz)
  end function
end program
