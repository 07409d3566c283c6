! pstswm: the shallow water equations on the sphere by the spectral transform method, as a test of
! communication (Worley and Foster's parallel shallow water model, written from scratch).
!
! docs/lab.md tells of the equations, the algorithms and the protocols; "pstswm help" lists the
! options.
program pstswm
  use, intrinsic :: iso_fortran_env, only: error_unit
  use mpi_f08
  use sphere, only: dp
  use clock, only: reset_clock
  use options, only: read_options, help, steps, protocol
  use native, only: is_native, make_native
  use mesh, only: make_mesh, world
  use legendre, only: make_legendre
  use transform, only: make_transform
  use dynamics, only: make_dynamics, advance
  use judge
  use output
  implicit none
  character(len=:), allocatable :: problem
  logical :: asks_help, right
  integer :: step, counted
  real(dp) :: since = 0, seconds

  call MPI_Init()
  call read_options(problem, asks_help)
  if (asks_help) call give_help()
  if (problem == '') call make_mesh(problem)
  if (problem == '' .and. is_native(protocol)) call make_native(protocol, problem)
  call end_if(problem)
  call make_legendre()
  call make_transform()
  call make_dynamics()
  call tell_configuration()
  call remember()

  ! The first step warms up; it is counted only if it is the only one.
  counted = max(steps - 1, 1)
  do step = 1, steps
    if (step <= 2) then
      call MPI_Barrier(world)
      call reset_clock()
      since = MPI_Wtime()
    end if
    call advance(first=step == 1)
  end do
  seconds = MPI_Wtime() - since
  call tell_times(seconds, counted)
  right = judge_results()
  call write_files(problem)
  call end_if(problem)
  call MPI_Finalize()
  if (.not. right) stop 1, quiet=.true.

contains

  subroutine give_help()
    integer :: me, i
    call MPI_Comm_rank(MPI_COMM_WORLD, me)
    if (me == 0) print '(a)', (trim(help(i)), i = 1, size(help))
    call MPI_Finalize()
    stop
  end subroutine

  ! Ends with exit status 2 if any rank has a problem. All have the same, but for files, which only
  ! the first writes.
  subroutine end_if(problem)
    character(len=*), intent(in) :: problem
    integer :: me
    logical :: any_problem
    call MPI_Allreduce(problem /= '', any_problem, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD)
    if (.not. any_problem) return
    call MPI_Comm_rank(MPI_COMM_WORLD, me)
    if (me == 0) write (error_unit, '(2a)') 'pstswm: ', problem
    call MPI_Finalize()
    stop 2, quiet=.true.
  end subroutine
end program
