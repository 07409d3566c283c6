! Collective operations: blocking, in place, with an intercommunicator, over neighbours; wrong arguments.
#include "forms.h"
subroutine test_collectives()
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, parameter :: most = 8
  integer :: rank, ranks, i, root, ierr, one, scan, best
  integer :: mine(most), all_of(most), counts(most), places(most), part(most), sum(most)
  HANDLE(MPI_Datatype) :: types(most)
  HANDLE(MPI_Comm) :: ring, half, between
  integer :: near_in(2), near_out(2), offset
  integer(MPI_ADDRESS_KIND) :: byte_places(2)

  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  root = ranks - 1
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call ok(ierr, 'MPI_Barrier')
  one = merge(42, 0, rank == root)
  call MPI_Bcast(one, 1, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
  call same(one, 42, 'MPI_Bcast')

  one = rank + 1
  all_of = -1
  call MPI_Gather(one, 1, MPI_INTEGER, all_of, 1, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
  if (rank == root) call listed(all_of, 'MPI_Gather')
  all_of = -1
  if (rank == root) then
    all_of(rank + 1) = rank + 1
    call MPI_Gather(MPI_IN_PLACE, 1, MPI_INTEGER, all_of, 1, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
    call listed(all_of, 'MPI_Gather in place')
  else
    call MPI_Gather(one, 1, MPI_INTEGER, all_of, 1, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
  end if
  counts = 1
  places = [(i, i = most, 1, -1)] - most + ranks - 1
  call MPI_Gatherv(one, 1, MPI_INTEGER, all_of, counts, places, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) call check(all(all_of(:ranks) == [(i, i = ranks, 1, -1)]), 'MPI_Gatherv')
  all_of = -1
  call MPI_Allgather(one, 1, MPI_INTEGER, all_of, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call listed(all_of, 'MPI_Allgather')
  all_of = -1
  all_of(rank + 1) = rank + 1
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_of, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call listed(all_of, 'MPI_Allgather in place')
  places = [(i, i = 0, most - 1)]
  all_of = -1
  call MPI_Allgatherv(one, 1, MPI_INTEGER, all_of, counts, places, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call listed(all_of, 'MPI_Allgatherv')

  mine = [(10 * i, i = 1, most)]
  call MPI_Scatter(mine, 1, MPI_INTEGER, one, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  call same(one, 10 * (rank + 1), 'MPI_Scatter')
  call MPI_Scatterv(mine, counts, places, MPI_INTEGER, one, 1, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
  call same(one, 10 * (rank + 1), 'MPI_Scatterv')
  mine = [(100 * rank + i, i = 0, most - 1)]
  call MPI_Alltoall(mine, 1, MPI_INTEGER, all_of, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call exchanged(all_of, 'MPI_Alltoall')
  all_of = mine
  call MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INTEGER, all_of, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call exchanged(all_of, 'MPI_Alltoall in place')
  call MPI_Alltoallv(mine, counts, places, MPI_INTEGER, all_of, counts, places, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call exchanged(all_of, 'MPI_Alltoallv')
  types = MPI_INTEGER
  call MPI_Alltoallw(mine, counts, 4 * places, types, all_of, counts, 4 * places, types, MPI_COMM_WORLD, ierr)
  call exchanged(all_of, 'MPI_Alltoallw')

  mine = [(rank + i, i = 1, most)]
  call MPI_Reduce(mine, sum, most, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD, ierr)
  if (rank == root) call summed(sum, 'MPI_Reduce')
  call MPI_Allreduce(mine, sum, most, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call summed(sum, 'MPI_Allreduce')
  sum = mine
  call MPI_Allreduce(MPI_IN_PLACE, sum, most, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call summed(sum, 'MPI_Allreduce in place')
  call MPI_Reduce_scatter_block(mine, part, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call same(part(1), ranks * (rank + 1) + ranks * (ranks - 1) / 2, 'MPI_Reduce_scatter_block')
  call MPI_Reduce_scatter(mine, part, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call same(part(1), ranks * (rank + 1) + ranks * (ranks - 1) / 2, 'MPI_Reduce_scatter')
  call MPI_Scan(rank, scan, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call same(scan, rank * (rank + 1) / 2, 'MPI_Scan')
  scan = 0
  call MPI_Exscan(rank, scan, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank > 0) call same(scan, rank * (rank - 1) / 2, 'MPI_Exscan')
  call MPI_Allreduce(rank, best, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
  call same(best, ranks - 1, 'MPI_MAX')
  part = [(i, i = 1, most)]
  call MPI_Reduce_local(mine, part, most, MPI_INTEGER, MPI_SUM, ierr)
  call check(all(part == [(rank + 2 * i, i = 1, most)]), 'MPI_Reduce_local')

  ! neighbours on a ring
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., ring, ierr)
  call ok(ierr, 'MPI_Cart_create')
  near_in = -1
  call MPI_Neighbor_allgather(rank, 1, MPI_INTEGER, near_in, 1, MPI_INTEGER, ring, ierr)
  call check(all(near_in == [mod(rank + ranks - 1, ranks), mod(rank + 1, ranks)]), 'MPI_Neighbor_allgather')
  near_in = -1
  call MPI_Neighbor_allgatherv(rank, 1, MPI_INTEGER, near_in, [1, 1], [1, 0], MPI_INTEGER, ring, ierr)
  call check(all(near_in == [mod(rank + 1, ranks), mod(rank + ranks - 1, ranks)]), 'MPI_Neighbor_allgatherv')
  near_out = [2 * rank, 2 * rank + 1]
  call MPI_Neighbor_alltoall(near_out, 1, MPI_INTEGER, near_in, 1, MPI_INTEGER, ring, ierr)
  call crossed(near_in, 'MPI_Neighbor_alltoall')
  call MPI_Neighbor_alltoallv(near_out, [1, 1], [0, 1], MPI_INTEGER, near_in, [1, 1], [0, 1], MPI_INTEGER, ring, ierr)
  call crossed(near_in, 'MPI_Neighbor_alltoallv')
  byte_places = [0, 4]
  call MPI_Neighbor_alltoallw(near_out, [1, 1], byte_places, types, near_in, [1, 1], byte_places, types, ring, ierr)
  call crossed(near_in, 'MPI_Neighbor_alltoallw')
  call MPI_Comm_free(ring, ierr)

  ! two groups
  if (ranks > 1) then
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, ierr)
    call MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - mod(rank, 2), 5, between, ierr)
    call ok(ierr, 'MPI_Intercomm_create')
    one = merge(17, -1, rank == 0)
    offset = 0
    if (mod(rank, 2) == 0) offset = merge(MPI_ROOT, MPI_PROC_NULL, rank == 0)
    call MPI_Bcast(one, 1, MPI_INTEGER, offset, between, ierr)
    call ok(ierr, 'MPI_Bcast between groups')
    if (mod(rank, 2) == 1) call same(one, 17, 'MPI_Bcast between groups')
    call MPI_Comm_free(between, ierr)
    call MPI_Comm_free(half, ierr)
  end if

  ! what is wrong is told
  call MPI_Bcast(one, 1, MPI_INTEGER, -9, MPI_COMM_SELF, ierr)
  call fails(ierr, MPI_ERR_ROOT, 'a root of -9')
  call MPI_Reduce(mine, sum, 1, MPI_INTEGER, MPI_OP_NULL, 0, MPI_COMM_SELF, ierr)
  call fails(ierr, MPI_ERR_OP, 'no operation')
  call MPI_Allreduce(mine, sum, 1, MPI_REAL, MPI_BAND, MPI_COMM_SELF, ierr)
  call check(ierr /= MPI_SUCCESS, 'MPI_BAND of reals')
  call MPI_Allgather(mine, -1, MPI_INTEGER, sum, 1, MPI_INTEGER, MPI_COMM_SELF, ierr)
  call fails(ierr, MPI_ERR_COUNT, 'a count of -1')
contains
  subroutine listed(got, what)
    integer, intent(in) :: got(:)
    character(len=*), intent(in) :: what
    integer :: k
    call check(all(got(:ranks) == [(k, k = 1, ranks)]) .and. all(got(ranks + 1:) == -1), what)
  end subroutine
  subroutine exchanged(got, what)
    integer, intent(in) :: got(:)
    character(len=*), intent(in) :: what
    integer :: k
    call check(all(got(:ranks) == [(100 * k + rank, k = 0, ranks - 1)]), what)
  end subroutine
  subroutine summed(got, what)
    integer, intent(in) :: got(:)
    character(len=*), intent(in) :: what
    integer :: k
    call check(all(got == [(ranks * k + ranks * (ranks - 1) / 2, k = 1, most)]), what)
  end subroutine
  subroutine crossed(got, what)
    integer, intent(in) :: got(2)
    character(len=*), intent(in) :: what
    call check(all(got == [2 * mod(rank + ranks - 1, ranks) + 1, 2 * mod(rank + 1, ranks)]), what)
  end subroutine
end subroutine
