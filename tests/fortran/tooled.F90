! What tools see of a program: a tool in C every call, one in Fortran those by the names it has, and not those with a P.
#include "forms.h"
program tooled
  USE_MPI
  use counted
  implicit none
  INCLUDE_MPI
  integer :: ierr, rank, value, before
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  value = rank
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_Bcast(value, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) print '("of Fortran ", i0, ", of C ", i0)', of_fortran, of_c
  before = of_fortran
#if defined(KW_F08)
  call PMPI_Barrier(MPI_COMM_WORLD)
#else
  call PMPI_Barrier(MPI_COMM_WORLD, ierr)
#endif
  call PMPI_Bcast(value, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  if (of_fortran /= before) stop 'a name with P has called the tool'
  call MPI_Finalize(ierr)
end program
