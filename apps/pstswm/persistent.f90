! persistent.f90: the persistent collectives that the program uses, which MPI has since version 4.
! apps/build takes mpi3/persistent.f90 in its place where there are none.
module persistent
  use mpi_f08, only: MPI_Allgather_init, MPI_Allreduce_init, MPI_Alltoallv_init, &
    MPI_Neighbor_alltoallv_init, MPI_Reduce_scatter_block_init
  implicit none
end module
