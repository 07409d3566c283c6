program hello
  use mpi_f08
  implicit none
  integer :: version, subversion
  logical :: flag
  ! may be called before MPI_Init, so this shows that the libraries are found at run time
  call MPI_Get_version(version, subversion)
  call MPI_Initialized(flag)
  if (version < 5 .or. flag) stop 1
end program
