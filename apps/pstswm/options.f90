! options.f90: what the user may choose, as words name=value on the command line.
!
! A new option is a line in the help text, a variable, and a case in `set`.
module options
  use sphere, only: dp, day
  implicit none
  private
  integer, parameter :: word = 16
  character(len=*), parameter :: yes_no(2) = [character(len=word) :: 'no', 'yes']

  ! The problem.
  integer, protected, public :: case_number = 2, truncation = 42, levels = 16, steps = 0
  real(dp), protected, public :: days = 5, time_step = 0, angle = 0, asselin = 0.02_dp
  real(dp), protected, public :: diffusion = 0
  ! How it is cut among the ranks, and how they communicate.
  integer, protected, public :: px = 0, py = 0
  character(len=word), protected, public :: order = 'row', algorithm = 'TN'
  character(len=word), protected, public :: transpose_by = 'alltoallv'
  character(len=24), protected, public :: sum_by = 'allreduce'
  character(len=word), protected, public :: update = 'all'
  character(len=word), protected, public :: protocol = 'sendrecv', pattern = 'swap'
  logical, protected, public :: ahead = .false., overlap = .false.
  integer, protected, public :: at_once = 0
  ! Files to write.
  character(len=256), protected, public :: state_file = '', field_file = ''

  integer, protected, public :: longitudes, latitudes    ! follow from the truncation

  integer, parameter :: resolutions = 7
  integer, parameter :: known(4, resolutions) = reshape([ &     ! truncation, grid, time step
    21, 64, 32, 2400,  31, 96, 48, 1800,  42, 128, 64, 1200,  63, 192, 96, 900, &
    85, 256, 128, 600,  106, 320, 160, 450,  170, 512, 256, 300], [4, resolutions])

  character(len=*), parameter, public :: help(*) = [character(len=100) :: &
    'pstswm: the shallow water equations on the sphere by the spectral transform method', &
    '', &
    'mpiexec -n RANKS pstswm [NAME=VALUE]...', &
    '', &
    'The problem', &
    '  case=2            2: steady solid-body rotation, 6: the Rossby-Haurwitz wave', &
    '  truncation=42     T21, T31, T42, T63, T85, T106 or T170', &
    '  levels=16         independent copies of the problem, an even number', &
    '  days=5            how long to simulate', &
    '  steps=N           as many time steps, instead of days', &
    '  dt=SECONDS        the time step (T21 2400, T42 1200, T85 600)', &
    '  angle=0           case 2: between the axes of the flow and of the sphere, in degrees', &
    '  asselin=0.02      coefficient of the time filter', &
    '  diffusion=0       coefficient of the fourth-order diffusion, in m^4/s', &
    '', &
    'Who computes what', &
    '  mesh=PXxPY        ranks along longitude x along latitude, for instance 2x4', &
    '  order=row         rank of (i, j): row: i + j PX; column: j + i PY; cart: MPI_Cart_create', &
    '  algorithm=TN      first letter: Fourier transform T: transposed, D: distributed;', &
    '                    second letter: Legendre transform N: vector sum, P: pipelined in a ring', &
    '', &
    'How they communicate', &
    '  transpose=WAY     for T: alltoallv, alltoallv_init, neighbor, neighbor_init, hand', &
    '  batch=0           for T: how many latitudes are transposed at a time; 0: all', &
    '  sum=WAY           for N: allreduce, allreduce_init, reduce_scatter, reduce_scatter_init,', &
    '                    halving, ring (hand, halving and ring are by hand, as are D and P)', &
    '  update=all        for N: who steps a coefficient forward: all ranks that have it, or', &
    '                    own: one, between the halves of the sum (not with allreduce)', &
    '  protocol=WAY      what is written by hand uses: sendrecv: MPI_Sendrecv;', &
    '                    ordered: MPI_Send and MPI_Recv, who sends to a higher rank sends first;', &
    '                    isend: MPI_Isend and MPI_Recv;', &
    '                    irecv: MPI_Irecv and MPI_Send;', &
    '                    nonblocking: MPI_Irecv and MPI_Isend;', &
    '                    ready: MPI_Irecv, a word that it is posted, and MPI_Rsend;', &
    '                    native: rings in shared memory, without MPI (all ranks on one host);', &
    '                    sockets: plain TCP connections, without MPI', &
    '  pattern=swap      transpose=hand: swap: pairs swap (PX is a power of 2);', &
    '                    ring: send to i + s, receive from i - s', &
    '  ahead=no          yes: post the receives of all exchanges of an operation at once', &
    '  overlap=no        yes: compute while messages are under way (D, P and transpose=hand)', &
    '', &
    'What to write', &
    '  state=FILE        the spectral coefficients at the end', &
    '  field=FILE        the height of the fluid at the end, on the grid (for picture.py)', &
    '', &
    'Exit status: 0 when the results are right, 1 when they are not, 2 when an option is wrong.']

  public :: read_options

contains

  ! Reads the command line. `problem` is a sentence if something is wrong with it, else empty;
  ! `asks_help` is true if the user asked for the help text.
  subroutine read_options(problem, asks_help)
    character(len=:), allocatable, intent(out) :: problem
    logical, intent(out) :: asks_help
    character(len=300) :: argument
    integer :: i, equals
    problem = ''
    asks_help = .false.
    do i = 1, command_argument_count()
      call get_command_argument(i, argument)
      select case (argument)
      case ('help', '-h', '-help', '--help')
        asks_help = .true.
        cycle
      end select
      equals = index(argument, '=')
      if (equals == 0) then
        problem = 'an option has the form NAME=VALUE, "' // trim(argument) // &
          '" has not; help lists them'
      else
        call set(argument(:equals - 1), trim(argument(equals + 1:)), problem)
      end if
      if (problem /= '') return
    end do
    call derive(problem)
  end subroutine

  subroutine set(name, value, problem)
    character(len=*), intent(in) :: name, value
    character(len=:), allocatable, intent(inout) :: problem
    select case (name)
    case ('case')
      call get_integer(case_number, 2, 6)
      if (case_number /= 2 .and. case_number /= 6) call wrong('2 or 6')
    case ('truncation')
      call get_integer(truncation, 1, 1000)
    case ('levels')
      call get_integer(levels, 2, 1000)
      if (mod(levels, 2) /= 0) call wrong('even: two levels are one complex line')
    case ('steps')
      call get_integer(steps, 1, huge(1))
    case ('days')
      call get_real(days, tiny(1d0), 1000d0, 'more than 0 and at most 1000')
    case ('dt')
      call get_real(time_step, 1d0, day, 'from 1 to 86400')
    case ('angle')
      call get_real(angle, -90d0, 90d0, 'from -90 to 90')
    case ('asselin')
      call get_real(asselin, 0d0, 0.5d0, 'from 0 to 0.5')
    case ('diffusion')
      call get_real(diffusion, 0d0, 1d18, 'from 0 to 1e18')
    case ('mesh')
      call get_mesh()
    case ('order')
      call get_word(order, 'row column cart')
    case ('algorithm')
      call get_word(algorithm, 'TN TP DN DP')
    case ('transpose')
      call get_word(transpose_by, 'alltoallv alltoallv_init neighbor neighbor_init hand')
    case ('sum')
      call get_word(sum_by, 'allreduce allreduce_init reduce_scatter reduce_scatter_init ' // &
        'halving ring')
    case ('update')
      call get_word(update, 'all own')
    case ('batch')
      call get_integer(at_once, 0, 1000)
    case ('protocol')
      call get_word(protocol, 'sendrecv ordered isend irecv nonblocking ready native sockets')
    case ('pattern')
      call get_word(pattern, 'swap ring')
    case ('ahead')
      call get_logical(ahead)
    case ('overlap')
      call get_logical(overlap)
    case ('state')
      state_file = value
    case ('field')
      field_file = value
    case default
      problem = 'there is no option "' // name // '"; help lists them'
    end select

  contains

    subroutine wrong(expected)
      character(len=*), intent(in) :: expected
      problem = name // '=' // value // ' is not possible: ' // name // ' must be ' // expected
    end subroutine

    subroutine get_integer(variable, least, most)
      integer, intent(inout) :: variable
      integer, intent(in) :: least, most
      integer :: status, number
      number = least - 1
      status = 1
      if (verify(value, '0123456789') == 0) read (value, *, iostat=status) number
      if (status /= 0 .or. number < least .or. number > most) then
        call wrong('a whole number from ' // decimal(least) // ' to ' // decimal(most))
      else
        variable = number
      end if
    end subroutine

    subroutine get_real(variable, least, most, range)
      real(dp), intent(inout) :: variable
      real(dp), intent(in) :: least, most
      character(len=*), intent(in) :: range
      real(dp) :: number
      integer :: status
      status = 1
      if (value /= '' .and. verify(value, '+-.0123456789eEdD') == 0) then
        read (value, *, iostat=status) number
      end if
      if (status == 0) then
        if (number >= least .and. number <= most) then
          variable = number
          return
        end if
      end if
      call wrong('a number ' // range)
    end subroutine

    subroutine get_word(variable, words)
      character(len=*), intent(inout) :: variable
      character(len=*), intent(in) :: words
      if (value == '' .or. index(value, ' ') > 0 .or. &
          index(' ' // words // ' ', ' ' // value // ' ') == 0) then
        call wrong('one of ' // words)
      else
        variable = value
      end if
    end subroutine

    subroutine get_logical(variable)
      logical, intent(inout) :: variable
      if (any(yes_no == value)) then
        variable = value == 'yes'
      else
        call wrong('yes or no')
      end if
    end subroutine

    subroutine get_mesh()
      integer :: x, status
      x = index(value, 'x')
      status = 1
      if (x > 1 .and. x < len(value) .and. len(value) < word) then
        if (verify(value(:x - 1) // value(x + 1:), '0123456789') == 0) then
          read (value(:x - 1), *, iostat=status) px
          if (status == 0) read (value(x + 1:), *, iostat=status) py
        end if
      end if
      if (status /= 0 .or. (px < 1 .or. py < 1)) call wrong('two numbers of ranks, such as 2x4')
    end subroutine
  end subroutine

  ! What follows from the options: the grid, the time step and the number of steps.
  subroutine derive(problem)
    character(len=:), allocatable, intent(inout) :: problem
    integer :: i
    i = findloc(known(1, :), truncation, 1)
    if (i == 0) then
      problem = 'truncation=' // decimal(truncation) // ' is not possible: ' // &
        'truncation must be one of 21 31 42 63 85 106 170'
      return
    end if
    longitudes = known(2, i)
    latitudes = known(3, i)
    if (time_step <= 0) time_step = known(4, i)
    if (steps == 0) steps = nint(days * day / time_step)
    if (steps == 0) problem = 'the simulation has no time step: days is too small for dt'
    days = steps * time_step / day
  end subroutine

  pure function decimal(number) result(text)
    integer, intent(in) :: number
    character(len=:), allocatable :: text
    character(len=20) :: digits
    write (digits, '(i0)') number
    text = trim(digits)
  end function
end module
