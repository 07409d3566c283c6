! The functions of program.c that are counted, in Fortran: KW_F08, KW_MPI or KW_MPIF says with which interface.
#if defined(KW_F08)
#define USE_MPI use mpi_f08
#define INCLUDE_MPI
#define REQUEST type(MPI_Request)
#define IERROR
#elif defined(KW_MPI)
#define USE_MPI use mpi
#define INCLUDE_MPI
#define REQUEST integer
#define IERROR , ierror
#else
#define USE_MPI
#define INCLUDE_MPI include 'mpif.h'
#define REQUEST integer
#define IERROR , ierror
#endif

module watched
  USE_MPI
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  private
  INCLUDE_MPI
  integer, parameter :: calls = 40
  integer(c_int), bind(C) :: rank, started
  integer(8), asynchronous :: mine = 1, all, came, many_came(calls)
  REQUEST :: requests(calls)
  integer :: ierror
contains
  subroutine a_send() bind(C)
    call MPI_Send(mine, 1, MPI_INTEGER8, 1 - rank, 0, MPI_COMM_WORLD IERROR)
  end subroutine
  subroutine b_recv() bind(C)
    call MPI_Recv(came, 1, MPI_INTEGER8, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERROR)
  end subroutine
  subroutine c_bcast() bind(C)
    call MPI_Bcast(mine, 1, MPI_INTEGER8, 0, MPI_COMM_WORLD IERROR)
  end subroutine
  subroutine d_allreduce() bind(C)
    call MPI_Allreduce(mine, all, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD IERROR)
  end subroutine
  subroutine e_isend() bind(C)
    started = started + 1
    call MPI_Isend(mine, 1, MPI_INTEGER8, 1 - rank, 0, MPI_COMM_WORLD, requests(started) IERROR)
  end subroutine
  subroutine f_irecv() bind(C)
    started = started + 1
    call MPI_Irecv(many_came(started), 1, MPI_INTEGER8, 1 - rank, 0, MPI_COMM_WORLD, requests(started) IERROR)
  end subroutine
  subroutine g_waitall() bind(C)
    call MPI_Waitall(calls, requests, MPI_STATUSES_IGNORE IERROR)
  end subroutine
end module
