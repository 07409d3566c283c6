! A tool in Fortran: procedures of the program take the place of MPI's, count, and call those with a P.
subroutine mpi_barrier(comm, ierror)
  use mpi, only: PMPI_Barrier
  use counted, only: of_fortran
  implicit none
  integer :: comm, ierror
  of_fortran = of_fortran + 1
  call PMPI_Barrier(comm, ierror)
end subroutine

! mpif.h passes addresses: whatever the type is, it goes on
subroutine mpi_bcast(buffer, count, datatype, root, comm, ierror)
  use counted, only: of_fortran
  implicit none
  integer :: buffer(*), count, datatype, root, comm, ierror
  external pmpi_bcast
  of_fortran = of_fortran + 1
  call pmpi_bcast(buffer, count, datatype, root, comm, ierror)
end subroutine
