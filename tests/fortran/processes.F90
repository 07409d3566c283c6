! Dynamic processes: programs with their arguments, ports, names of services, two ranks that connect to each other.
#include "forms.h"
subroutine test_processes()
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  HANDLE(MPI_Comm) :: parent, inter
  HANDLE(MPI_Info) :: infos(2)
  character(len=MPI_MAX_PORT_NAME) :: port, found
  character(len=80) :: command, commands(2), file, files(2), service
  character(len=120) :: argv(3), argvs(2, 3)
  integer :: ierr, size, codes(2), counts(2), i, clock

  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call MPI_Comm_get_parent(parent, ierr)
  call check(ierr == MPI_SUCCESS .and. parent == MPI_COMM_NULL, 'MPI_Comm_get_parent')
  call system_clock(clock)

  ! a program that is none of MPI: it runs with its arguments, and the call says that it has ended
  write (file, '(a,i0,a,i0)') 'processes-', here, '-', clock
  command = '/bin/sh'
  argv(1) = '-c'
  argv(2) = 'echo two  words > '//file
  argv(3) = ' '
  call MPI_Comm_spawn(command, argv, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, inter, codes, ierr)
  call refused('MPI_Comm_spawn', MPI_ERR_SPAWN)
  call check(codes(1) /= MPI_SUCCESS, 'the code of a failed spawn')
  call written(file, 'two words')

  do i = 1, 2
    commands(i) = '/bin/sh'
    write (files(i), '(a,a,i0)') trim(file), '-', i
    argvs(i, 1) = '-c'
    write (argvs(i, 2), '(a,i0,a,a)') 'echo ', i, ' > ', trim(files(i))
    argvs(i, 3) = ' '
    counts(i) = 1
    infos(i) = MPI_INFO_NULL
  end do
  call MPI_Comm_spawn_multiple(2, commands, argvs, counts, infos, 0, MPI_COMM_SELF, inter, codes, ierr)
  call refused('MPI_Comm_spawn_multiple', MPI_ERR_SPAWN)
  call written(files(1), '1')
  call written(files(2), '2')

  ! the first and the last rank connect, as processes of two jobs do
  write (service, '(a,i0,a,i0)') 'processes in Fortran ', here, ' ', clock
  if (here == 0) then
    port = repeat('x', len(port))
    call MPI_Open_port(MPI_INFO_NULL, port, ierr)
    call check(ierr == MPI_SUCCESS .and. len_trim(port) > 0 .and. len_trim(port) < len(port), 'MPI_Open_port')
    call MPI_Publish_name(service, MPI_INFO_NULL, port, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_Publish_name')
    found = repeat('x', len(found))
    call MPI_Lookup_name(service, MPI_INFO_NULL, found, ierr)
    call check(ierr == MPI_SUCCESS .and. found == port, 'MPI_Lookup_name')
    call MPI_Unpublish_name(service, MPI_INFO_NULL, port, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_Unpublish_name')
    call MPI_Lookup_name(service, MPI_INFO_NULL, found, ierr)
    call refused('MPI_Lookup_name of a name that was taken back', MPI_ERR_NAME)
  end if
  call MPI_Bcast(port, len(port), MPI_CHARACTER, 0, MPI_COMM_WORLD, ierr)
  if (size > 1 .and. here == 0) then
    call MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, inter, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_Comm_accept')
    call parts('MPI_Comm_accept')
  else if (size > 1 .and. here == size - 1) then
    call MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, inter, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_Comm_connect')
    call parts('MPI_Comm_connect')
  end if
  if (here == 0) then
    call MPI_Close_port(port, ierr)
    call check(ierr == MPI_SUCCESS, 'MPI_Close_port')
    call MPI_Close_port(port, ierr)
    call refused('MPI_Close_port of a closed port', MPI_ERR_PORT)
  end if
  call MPI_Comm_join(-1, inter, ierr)
  call refused('MPI_Comm_join without a socket', MPI_ERR_ARG)
contains
  ! the last call has failed with this class
  subroutine refused(what, class)
    character(len=*), intent(in) :: what
    integer, intent(in) :: class
    integer :: got, again
    call MPI_Error_class(ierr, got, again)
    call check(got == class, what//' is refused with another class')
  end subroutine

  ! a program has written this into a file
  subroutine written(name, want)
    character(len=*), intent(in) :: name, want
    character(len=80) :: line
    integer :: unit, status
    line = ' '
    open (newunit=unit, file=trim(name), status='old', iostat=status)
    call check(status == 0, 'the program has not run: '//trim(name))
    if (status /= 0) return
    read (unit, '(a)', iostat=status) line
    call check(line == want, 'the arguments were: '//trim(line))
    close (unit, status='delete')
  end subroutine

  ! both sides speak, and go apart
  subroutine parts(what)
    character(len=*), intent(in) :: what
    integer :: mine, theirs
    mine = here
    theirs = -1
    call MPI_Allreduce(mine, theirs, 1, MPI_INTEGER, MPI_SUM, inter, ierr)
    call check(theirs == size - 1 - here, 'what the other side says after '//what)
    call MPI_Comm_disconnect(inter, ierr)
    call check(ierr == MPI_SUCCESS .and. inter == MPI_COMM_NULL, 'MPI_Comm_disconnect after '//what)
  end subroutine
end subroutine
