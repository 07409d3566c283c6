! Topologies: grids, graphs, distributed graphs.
#include "forms.h"
subroutine test_topologies()
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer :: rank, ranks, ierr, i, dims(2), coords(2), got(2), place, from, to, kind, dimensions, number, edges
  integer :: index(8), targets(8), near(2), sources(2), weights(2), out_weights(2), destinations(2), in_degree, out_degree
  logical :: periods(2), wraps(2), weighted
  HANDLE(MPI_Comm) :: grid, line, graph

  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  dims = 0
  call MPI_Dims_create(ranks, 2, dims, ierr)
  call same(dims(1) * dims(2), ranks, 'the places of a grid')
  periods = [.true., .false.]
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., grid, ierr)
  call ok(ierr, 'MPI_Cart_create')
  call MPI_Topo_test(grid, kind, ierr)
  call same(kind, MPI_CART, 'MPI_Topo_test')
  call MPI_Cartdim_get(grid, dimensions, ierr)
  call same(dimensions, 2, 'MPI_Cartdim_get')
  call MPI_Cart_get(grid, 2, got, wraps, coords, ierr)
  call check(all(got == dims), 'the dimensions that MPI_Cart_get gives')
  call check((wraps(1) .eqv. .true.) .and. (wraps(2) .eqv. .false.), 'the periods that MPI_Cart_get gives')
  call check(coords(1) * dims(2) + coords(2) == rank, 'the coordinates that MPI_Cart_get gives')
  call MPI_Cart_coords(grid, rank, 2, got, ierr)
  call check(all(got == coords), 'MPI_Cart_coords')
  call MPI_Cart_rank(grid, coords, place, ierr)
  call same(place, rank, 'MPI_Cart_rank')
  call MPI_Cart_shift(grid, 1, 1, from, to, ierr)
  call check((from == MPI_PROC_NULL) .eqv. (coords(2) == 0), 'the source of MPI_Cart_shift')
  call check((to == MPI_PROC_NULL) .eqv. (coords(2) == dims(2) - 1), 'the destination of MPI_Cart_shift')
  call MPI_Cart_sub(grid, [.false., .true.], line, ierr)
  call MPI_Comm_size(line, place, ierr)
  call same(place, dims(2), 'the size of a line of a grid')
  call MPI_Comm_free(line, ierr)
  call MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, place, ierr)
  call ok(ierr, 'MPI_Cart_map')
  call MPI_Cart_rank(grid, [0, dims(2)], place, ierr)
  call check(ierr /= MPI_SUCCESS, 'a place beyond the grid')
  call MPI_Comm_free(grid, ierr)
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks + 1], periods, .false., grid, ierr)
  call check(ierr /= MPI_SUCCESS, 'a grid of more places than ranks')

  ! a line as a graph: each rank knows the next one
  do i = 1, ranks
    index(i) = i
    targets(i) = mod(i, ranks)
  end do
  call MPI_Graph_create(MPI_COMM_WORLD, ranks, index, targets, .false., graph, ierr)
  call ok(ierr, 'MPI_Graph_create')
  call MPI_Graphdims_get(graph, number, edges, ierr)
  call check(number == ranks .and. edges == ranks, 'MPI_Graphdims_get')
  index = -1
  call MPI_Graph_get(graph, ranks, ranks, index, targets, ierr)
  call check(all(index(:ranks) == [(i, i = 1, ranks)]), 'MPI_Graph_get')
  call MPI_Graph_neighbors_count(graph, rank, number, ierr)
  call same(number, 1, 'MPI_Graph_neighbors_count')
  call MPI_Graph_neighbors(graph, rank, 1, near, ierr)
  call same(near(1), mod(rank + 1, ranks), 'MPI_Graph_neighbors')
  call MPI_Graph_map(MPI_COMM_WORLD, ranks, index, targets, place, ierr)
  call ok(ierr, 'MPI_Graph_map')
  call MPI_Comm_free(graph, ierr)

  sources(1) = mod(rank + ranks - 1, ranks)
  destinations(1) = mod(rank + 1, ranks)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, sources, [3], 1, destinations, [4], MPI_INFO_NULL, .false., graph, ierr)
  call ok(ierr, 'MPI_Dist_graph_create_adjacent')
  call MPI_Dist_graph_neighbors_count(graph, in_degree, out_degree, weighted, ierr)
  call check(in_degree == 1 .and. out_degree == 1 .and. weighted, 'MPI_Dist_graph_neighbors_count')
  call MPI_Dist_graph_neighbors(graph, 1, near, weights, 1, got, out_weights, ierr)
  call check(near(1) == sources(1) .and. got(1) == destinations(1), 'MPI_Dist_graph_neighbors')
  call check(weights(1) == 3 .and. out_weights(1) == 4, 'the weights that MPI_Dist_graph_neighbors gives')
  call MPI_Comm_free(graph, ierr)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, sources, MPI_UNWEIGHTED, 1, destinations, MPI_UNWEIGHTED, &
                                      MPI_INFO_NULL, .false., graph, ierr)
  call ok(ierr, 'MPI_Dist_graph_create_adjacent without weights')
  call MPI_Dist_graph_neighbors_count(graph, in_degree, out_degree, weighted, ierr)
  call check(.not. weighted, 'a graph without weights has weights')
  call MPI_Comm_free(graph, ierr)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, sources, MPI_WEIGHTS_EMPTY, 0, destinations, MPI_WEIGHTS_EMPTY, &
                                      MPI_INFO_NULL, .false., graph, ierr)
  call ok(ierr, 'MPI_Dist_graph_create_adjacent without edges')
  call MPI_Dist_graph_neighbors_count(graph, in_degree, out_degree, weighted, ierr)
  call check(weighted, 'a graph of empty weights has none')
  call MPI_Comm_free(graph, ierr)
  call MPI_Dist_graph_create(MPI_COMM_WORLD, 1, [rank], [1], destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph, ierr)
  call ok(ierr, 'MPI_Dist_graph_create')
  call MPI_Dist_graph_neighbors_count(graph, in_degree, out_degree, weighted, ierr)
  call check(in_degree == 1 .and. out_degree == 1, 'the degrees of a graph of MPI_Dist_graph_create')
  call MPI_Comm_free(graph, ierr)
end subroutine
