! ep: pairs of Gaussian random numbers, "embarrassingly parallel": nothing is communicated but the
! sums at the end.
!
!   make apps && dist/bin/mpiexec -n 4 build/apps/ep W
!
! Of pairs of uniform numbers (x, y) in the square from -1 to 1, those with t = x^2 + y^2 <= 1 give
! two independent Gaussian numbers, x sqrt(-2 log(t) / t) and the same with y. The result is the
! sums of both, and how many pairs lie in the square ring l <= max(|X|, |Y|) < l + 1. Ranks take
! equal shares of one sequence of random numbers, each by jumping to where its share begins. Any
! number of ranks.
program ep
  use mpi_f08
  use nas
  implicit none
  integer, parameter :: batch = 2**16                     ! pairs that are made at once
  integer(int64), parameter :: first_state = 271828183_int64
  real(dp), parameter :: tolerance = 1e-8_dp
  real(dp) :: sums(2), rings(0:9), published(2), begin, seconds
  character(2) :: class
  integer :: logarithm, batches, number

  class = start("ep", ["S", "W", "A"])
  select case (class)
  case ("W")
    logarithm = 25
    published = [-2.863319731645753e3_dp, -6.320053679109499e3_dp]
  case ("A")
    logarithm = 28
    published = [-4.295875165629892e3_dp, -1.580732573678431e4_dp]
  case default
    logarithm = 24
    published = [-3.247834652034740e3_dp, -6.958407078382297e3_dp]
  end select

  batches = 2**(logarithm - 16)
  begin = stopwatch()
  sums = 0
  rings = 0
  do number = first(rank, ranks, batches), first(rank + 1, ranks, batches) - 1
    call one_batch(ahead(first_state, 2_int64 * batch * (number - 1)))
  end do
  call MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Allreduce(MPI_IN_PLACE, rings, 10, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  seconds = MPI_Wtime() - begin

  if (rank == 0) then
    print '("sums of Gaussian numbers", 2es23.15, ", should be", 2es23.15)', sums, published
    print '("pairs by ring", 10(1x, i0))', int(rings, int64)
  end if
  call finish("EP class "//trim(class)//": Gaussian random numbers", seconds, 2._dp**(logarithm + 1), &
    agrees(sums, published, tolerance))

contains

  ! Adds what a batch of pairs gives; `state` is the generator's before it.
  subroutine one_batch(state)
    integer(int64), value :: state
    real(dp), save :: r(2 * batch)
    real(dp) :: x, y, t, factor
    integer :: i, ring

    call fill(state, r)
    do i = 1, batch
      x = 2 * r(2 * i - 1) - 1
      y = 2 * r(2 * i) - 1
      t = x**2 + y**2
      if (t > 1) cycle
      factor = sqrt(-2 * log(t) / t)
      sums = sums + [x, y] * factor
      ring = int(max(abs(x), abs(y)) * factor)
      rings(ring) = rings(ring) + 1
    end do
  end subroutine
end program
