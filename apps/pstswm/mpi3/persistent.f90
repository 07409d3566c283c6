! persistent.f90, for an MPI without persistent collectives: who asks for one is told so.
module persistent
  use, intrinsic :: iso_fortran_env, only: error_unit
  use mpi_f08, only: MPI_Comm, MPI_Comm_rank, MPI_COMM_WORLD, MPI_Datatype, MPI_Finalize, MPI_Info, &
    MPI_Op, MPI_Request
  implicit none
  private
  public :: MPI_Allgather_init, MPI_Allreduce_init, MPI_Alltoallv_init, &
    MPI_Neighbor_alltoallv_init, MPI_Reduce_scatter_block_init

contains

  subroutine missing(name)
    character(*), intent(in) :: name
    integer :: rank
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    if (rank == 0) write (error_unit, '(3a)') 'pstswm: this MPI has no ', name, &
      ', which came with MPI 4: take a transpose= and a sum= without _init'
    call MPI_Finalize()
    stop 2, quiet=.true.
  end subroutine

  subroutine MPI_Allgather_init(out, n, type, in, each, in_type, comm, info, request)
    type(*), dimension(..), intent(in) :: out, in
    integer, intent(in) :: n, each
    type(MPI_Datatype), intent(in) :: type, in_type
    type(MPI_Comm), intent(in) :: comm
    type(MPI_Info), intent(in) :: info
    type(MPI_Request), intent(inout) :: request
    call missing('MPI_Allgather_init')
  end subroutine

  subroutine MPI_Allreduce_init(out, in, n, type, op, comm, info, request)
    type(*), dimension(..), intent(in) :: out, in
    integer, intent(in) :: n
    type(MPI_Datatype), intent(in) :: type
    type(MPI_Op), intent(in) :: op
    type(MPI_Comm), intent(in) :: comm
    type(MPI_Info), intent(in) :: info
    type(MPI_Request), intent(inout) :: request
    call missing('MPI_Allreduce_init')
  end subroutine

  subroutine MPI_Reduce_scatter_block_init(out, in, n, type, op, comm, info, request)
    type(*), dimension(..), intent(in) :: out, in
    integer, intent(in) :: n
    type(MPI_Datatype), intent(in) :: type
    type(MPI_Op), intent(in) :: op
    type(MPI_Comm), intent(in) :: comm
    type(MPI_Info), intent(in) :: info
    type(MPI_Request), intent(inout) :: request
    call missing('MPI_Reduce_scatter_block_init')
  end subroutine

  subroutine MPI_Alltoallv_init(out, counts, places, type, in, in_counts, in_places, in_type, &
      comm, info, request)
    type(*), dimension(..), intent(in) :: out, in
    integer, intent(in) :: counts(*), places(*), in_counts(*), in_places(*)
    type(MPI_Datatype), intent(in) :: type, in_type
    type(MPI_Comm), intent(in) :: comm
    type(MPI_Info), intent(in) :: info
    type(MPI_Request), intent(inout) :: request
    call missing('MPI_Alltoallv_init')
  end subroutine

  subroutine MPI_Neighbor_alltoallv_init(out, counts, places, type, in, in_counts, in_places, &
      in_type, comm, info, request)
    type(*), dimension(..), intent(in) :: out, in
    integer, intent(in) :: counts(*), places(*), in_counts(*), in_places(*)
    type(MPI_Datatype), intent(in) :: type, in_type
    type(MPI_Comm), intent(in) :: comm
    type(MPI_Info), intent(in) :: info
    type(MPI_Request), intent(inout) :: request
    call missing('MPI_Neighbor_alltoallv_init')
  end subroutine

end module
