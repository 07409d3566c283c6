! The nonblocking and persistent forms of every collective operation.
#include "forms.h"
subroutine test_forms()
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, parameter :: most = 8
  integer :: rank, ranks, i, ierr, form
  integer LASTING :: counts(most), places(most), byte_places(most), out(most), in(most), near(2), near_out(2)
  integer(MPI_ADDRESS_KIND) :: far(2)
  HANDLE(MPI_Datatype) :: types(most)
  HANDLE(MPI_Comm) :: ring
  HANDLE(MPI_Request) :: request

  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., ring, ierr)
  counts = 1
  places = [(i, i = 0, most - 1)]
  byte_places = 4 * places
  far = [0, 4]
  types = MPI_INTEGER
  do form = 1, 2
    if (form == 1) call MPI_Ibarrier(MPI_COMM_WORLD, request, ierr)
    if (form == 2) call MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call finish('barrier')

    in = merge(5, 0, rank == 0)
    if (form == 1) call MPI_Ibcast(in, most, MPI_INTEGER, 0, MPI_COMM_WORLD, request, ierr)
    if (form == 2) call MPI_Bcast_init(in, most, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call finish('bcast')
    call check(all(in == 5), 'what bcast brought')

    call reset()
    if (form == 1) call MPI_Igather(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, request, ierr)
    if (form == 2) call MPI_Gather_init(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call finish('gather')
    if (rank == 0) call check(all(in(:ranks) == [(100 * i, i = 0, ranks - 1)]), 'what gather brought')

    call reset()
    if (form == 1) call MPI_Igatherv(out, 1, MPI_INTEGER, in, counts, places, MPI_INTEGER, 0, MPI_COMM_WORLD, request, ierr)
    if (form == 2) call MPI_Gatherv_init(out, 1, MPI_INTEGER, in, counts, places, MPI_INTEGER, 0, MPI_COMM_WORLD, &
                                         MPI_INFO_NULL, request, ierr)
    call finish('gatherv')
    if (rank == 0) call check(all(in(:ranks) == [(100 * i, i = 0, ranks - 1)]), 'what gatherv brought')

    call reset()
    if (form == 1) call MPI_Iallgather(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, MPI_COMM_WORLD, request, ierr)
    if (form == 2) call MPI_Allgather_init(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call finish('allgather')
    call check(all(in(:ranks) == [(100 * i, i = 0, ranks - 1)]), 'what allgather brought')

    call reset()
    if (form == 1) call MPI_Iallgatherv(out, 1, MPI_INTEGER, in, counts, places, MPI_INTEGER, MPI_COMM_WORLD, request, ierr)
    if (form == 2) call MPI_Allgatherv_init(out, 1, MPI_INTEGER, in, counts, places, MPI_INTEGER, MPI_COMM_WORLD, &
                                            MPI_INFO_NULL, request, ierr)
    call finish('allgatherv')
    call check(all(in(:ranks) == [(100 * i, i = 0, ranks - 1)]), 'what allgatherv brought')

    call reset()
    if (form == 1) call MPI_Iscatter(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, request, ierr)
    if (form == 2) call MPI_Scatter_init(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call finish('scatter')
    call same(in(1), rank, 'what scatter brought')

    call reset()
    if (form == 1) call MPI_Iscatterv(out, counts, places, MPI_INTEGER, in, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, request, ierr)
    if (form == 2) call MPI_Scatterv_init(out, counts, places, MPI_INTEGER, in, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, &
                                          MPI_INFO_NULL, request, ierr)
    call finish('scatterv')
    call same(in(1), rank, 'what scatterv brought')

    call reset()
    if (form == 1) call MPI_Ialltoall(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, MPI_COMM_WORLD, request, ierr)
    if (form == 2) call MPI_Alltoall_init(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call finish('alltoall')
    call exchanged('alltoall')

    call reset()
    if (form == 1) call MPI_Ialltoallv(out, counts, places, MPI_INTEGER, in, counts, places, MPI_INTEGER, MPI_COMM_WORLD, &
                                       request, ierr)
    if (form == 2) call MPI_Alltoallv_init(out, counts, places, MPI_INTEGER, in, counts, places, MPI_INTEGER, MPI_COMM_WORLD, &
                                           MPI_INFO_NULL, request, ierr)
    call finish('alltoallv')
    call exchanged('alltoallv')

    call reset()
    if (form == 1) call MPI_Ialltoallw(out, counts, byte_places, types, in, counts, byte_places, types, MPI_COMM_WORLD, &
                                       request, ierr)
    if (form == 2) call MPI_Alltoallw_init(out, counts, byte_places, types, in, counts, byte_places, types, MPI_COMM_WORLD, &
                                           MPI_INFO_NULL, request, ierr)
    call finish('alltoallw')
    call exchanged('alltoallw')

    call reset()
    if (form == 1) call MPI_Ireduce(out, in, most, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, request, ierr)
    if (form == 2) call MPI_Reduce_init(out, in, most, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call finish('reduce')
    if (rank == 0) call check(all(in == [(total(i), i = 0, most - 1)]), 'what reduce brought')

    call reset()
    in = out
    if (form == 1) call MPI_Iallreduce(MPI_IN_PLACE, in, most, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, ierr)
    if (form == 2) call MPI_Allreduce_init(out, in, most, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call finish('allreduce')
    call check(all(in == [(total(i), i = 0, most - 1)]), 'what allreduce brought')

    call reset()
    if (form == 1) call MPI_Ireduce_scatter(out, in, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, ierr)
    if (form == 2) call MPI_Reduce_scatter_init(out, in, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call finish('reduce_scatter')
    call same(in(1), total(rank), 'what reduce_scatter brought')

    call reset()
    if (form == 1) call MPI_Ireduce_scatter_block(out, in, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, ierr)
    if (form == 2) call MPI_Reduce_scatter_block_init(out, in, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call finish('reduce_scatter_block')
    call same(in(1), total(rank), 'what reduce_scatter_block brought')

    call reset()
    if (form == 1) call MPI_Iscan(out, in, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, ierr)
    if (form == 2) call MPI_Scan_init(out, in, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call finish('scan')
    call same(in(1), 50 * rank * (rank + 1), 'what scan brought')

    call reset()
    if (form == 1) call MPI_Iexscan(out, in, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, ierr)
    if (form == 2) call MPI_Exscan_init(out, in, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
    call finish('exscan')
    if (rank > 0) call same(in(1), 50 * rank * (rank - 1), 'what exscan brought')

    if (form == 1) call MPI_Ineighbor_allgather(rank, 1, MPI_INTEGER, near, 1, MPI_INTEGER, ring, request, ierr)
    if (form == 2) call MPI_Neighbor_allgather_init(rank, 1, MPI_INTEGER, near, 1, MPI_INTEGER, ring, MPI_INFO_NULL, request, ierr)
    call finish('neighbor_allgather')
    call check(all(near == [mod(rank + ranks - 1, ranks), mod(rank + 1, ranks)]), 'what neighbor_allgather brought')

    if (form == 1) call MPI_Ineighbor_allgatherv(rank, 1, MPI_INTEGER, near, counts, places, MPI_INTEGER, ring, request, ierr)
    if (form == 2) call MPI_Neighbor_allgatherv_init(rank, 1, MPI_INTEGER, near, counts, places, MPI_INTEGER, ring, &
                                                     MPI_INFO_NULL, request, ierr)
    call finish('neighbor_allgatherv')
    call check(all(near == [mod(rank + ranks - 1, ranks), mod(rank + 1, ranks)]), 'what neighbor_allgatherv brought')

    near_out = [2 * rank, 2 * rank + 1]
    if (form == 1) call MPI_Ineighbor_alltoall(near_out, 1, MPI_INTEGER, near, 1, MPI_INTEGER, ring, request, ierr)
    if (form == 2) call MPI_Neighbor_alltoall_init(near_out, 1, MPI_INTEGER, near, 1, MPI_INTEGER, ring, MPI_INFO_NULL, request, ierr)
    call finish('neighbor_alltoall')
    call crossed('neighbor_alltoall')

    if (form == 1) call MPI_Ineighbor_alltoallv(near_out, counts, places, MPI_INTEGER, near, counts, places, MPI_INTEGER, ring, &
                                                request, ierr)
    if (form == 2) call MPI_Neighbor_alltoallv_init(near_out, counts, places, MPI_INTEGER, near, counts, places, MPI_INTEGER, &
                                                    ring, MPI_INFO_NULL, request, ierr)
    call finish('neighbor_alltoallv')
    call crossed('neighbor_alltoallv')

    if (form == 1) call MPI_Ineighbor_alltoallw(near_out, counts, far, types, near, counts, far, types, ring, request, ierr)
    if (form == 2) call MPI_Neighbor_alltoallw_init(near_out, counts, far, types, near, counts, far, types, ring, &
                                                    MPI_INFO_NULL, request, ierr)
    call finish('neighbor_alltoallw')
    call crossed('neighbor_alltoallw')
  end do
  call MPI_Comm_free(ring, ierr)
contains
  subroutine reset()
    integer :: k
    out = [(100 * rank + k, k = 0, most - 1)]
    in = -1
  end subroutine
  integer function total(place) ! of out(place + 1) over all ranks
    integer, intent(in) :: place
    total = 50 * ranks * (ranks - 1) + ranks * place
  end function
  subroutine exchanged(what)
    character(len=*), intent(in) :: what
    integer :: k
    call check(all(in(:ranks) == [(100 * k + rank, k = 0, ranks - 1)]), 'what '//what//' brought')
  end subroutine
  subroutine crossed(what)
    character(len=*), intent(in) :: what
    call check(all(near == [2 * mod(rank + ranks - 1, ranks) + 1, 2 * mod(rank + 1, ranks)]), 'what '//what//' brought')
  end subroutine
  subroutine finish(what)
    character(len=*), intent(in) :: what
    integer :: ierr_of_end
    call ok(ierr, what)
    if (form == 2) call MPI_Start(request, ierr_of_end)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr_of_end)
    call ok(ierr_of_end, 'the end of '//what)
    if (form == 2) call MPI_Request_free(request, ierr_of_end)
  end subroutine
end subroutine
