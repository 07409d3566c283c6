! native.f90: Fortran's view of native.c: messages below MPI.
module native
  use, intrinsic :: iso_c_binding
  use mpi_f08
  implicit none
  private
  public :: is_native, make_native, native_send, native_receive, native_wait, world_rank

  interface
    integer(c_int) function native_open(name, ranks, rank, makes) bind(C)
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: ranks, rank, makes
    end function
    subroutine native_unlink(name) bind(C)
      import
      character(kind=c_char), intent(in) :: name(*)
    end subroutine
    integer(c_int) function sockets_listen(one_host, here) bind(C)
      import
      integer(c_int), value :: one_host
      character(kind=c_char), intent(out) :: here(*)
    end function
    integer(c_int) function sockets_connect(there, ranks, rank) bind(C)
      import
      character(kind=c_char), intent(in) :: there(*)
      integer(c_int), value :: ranks, rank
    end function
    integer(c_int64_t) function native_send(to, from, length) bind(C)
      import
      integer(c_int), value :: to
      type(c_ptr), value :: from
      integer(c_size_t), value :: length
    end function
    integer(c_int64_t) function native_receive(from, into, length) bind(C)
      import
      integer(c_int), value :: from
      type(c_ptr), value :: into
      integer(c_size_t), value :: length
    end function
    subroutine native_wait(ticket) bind(C)
      import
      integer(c_int64_t), value :: ticket
    end subroutine
    integer(c_int) function getpid() bind(C)
      import
    end function
  end interface

contains

  ! Whether messages by this protocol go below MPI.
  pure logical function is_native(protocol)
    character(len=*), intent(in) :: protocol
    is_native = protocol == 'native' .or. protocol == 'sockets'
  end function

  ! Makes what messages by this protocol go through. `problem` is a sentence if that is not possible,
  ! else empty.
  subroutine make_native(protocol, problem)
    character(len=*), intent(in) :: protocol
    character(len=:), allocatable, intent(out) :: problem
    type(MPI_Comm) :: host
    integer :: rank, ranks, here
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, host)
    call MPI_Comm_size(host, here)
    call MPI_Comm_free(host)
    call MPI_Allreduce(MPI_IN_PLACE, here, 1, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD)
    if (protocol == 'sockets') then
      call make_sockets(rank, ranks, here == ranks, problem)
    else if (here < ranks) then
      problem = 'protocol=native needs all ranks on one host'
    else
      call make_rings(rank, ranks, problem)
    end if
  end subroutine

  subroutine make_rings(rank, ranks, problem)
    integer, intent(in) :: rank, ranks
    character(len=:), allocatable, intent(out) :: problem
    character(len=40) :: name
    integer :: status
    problem = ''
    write (name, '("/pstswm.", i0, a)') getpid(), c_null_char
    call MPI_Bcast(name, len(name), MPI_CHARACTER, 0, MPI_COMM_WORLD)
    status = 0
    if (rank == 0) status = native_open(name, ranks, rank, 1)
    call MPI_Barrier(MPI_COMM_WORLD)
    if (rank /= 0) status = native_open(name, ranks, rank, 0)
    call MPI_Allreduce(MPI_IN_PLACE, status, 1, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD)
    if (rank == 0) call native_unlink(name)
    if (status /= 0) problem = 'protocol=native has found no shared memory for its rings'
  end subroutine

  subroutine make_sockets(rank, ranks, one_host, problem)
    integer, intent(in) :: rank, ranks
    logical, intent(in) :: one_host
    character(len=:), allocatable, intent(out) :: problem
    integer, parameter :: length = 16           ! of a struct sockaddr_in
    character(len=length) :: mine, all(ranks)
    integer :: status
    problem = ''
    status = sockets_listen(merge(1, 0, one_host), mine)
    call MPI_Allreduce(MPI_IN_PLACE, status, 1, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD)
    if (status == 0) then
      call MPI_Allgather(mine, length, MPI_CHARACTER, all, length, MPI_CHARACTER, MPI_COMM_WORLD)
      status = sockets_connect(all, ranks, rank)
      call MPI_Allreduce(MPI_IN_PLACE, status, 1, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD)
    end if
    if (status /= 0) problem = 'protocol=sockets has found no network between its ranks'
  end subroutine

  ! What a rank of a communicator is called in MPI_COMM_WORLD.
  integer function world_rank(comm, rank)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: rank
    type(MPI_Group) :: some, all
    integer :: found(1)
    call MPI_Comm_group(comm, some)
    call MPI_Comm_group(MPI_COMM_WORLD, all)
    call MPI_Group_translate_ranks(some, 1, [rank], all, found)
    call MPI_Group_free(some)
    call MPI_Group_free(all)
    world_rank = found(1)
  end function
end module
