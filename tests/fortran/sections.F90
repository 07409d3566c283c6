! Array sections that are not contiguous, sent and received as they are: blocking, nonblocking, persistent, in collectives.
#include "forms.h"
subroutine test_sections()
  USE_MPI
  use checks
  implicit none
  integer, parameter :: n = 12
  integer, asynchronous :: plate(n, n), other(n, n), cube(4, 4, 4), cubes(4, 4, 4)
  integer :: rank, ranks, next, previous, ierr, i, round, position
  integer, asynchronous :: line(n), all_lines(n, 8)
  integer, pointer :: every(:)
  integer, target :: store(3 * n)
  integer, allocatable, asynchronous :: columns(:, :)
  character :: packed(100)
  character(len=MPI_MAX_ERROR_STRING) :: sentence
  character(len=4), asynchronous :: words(6), words_in(6)
  type inner
    integer :: i
    double precision :: x
  end type
  type(inner) :: list(n), got(n)
  HANDLE(MPI_Request) :: requests(2)
  HANDLE(MPI_Datatype) :: t

  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  plate = reshape([(10000 * rank + i, i = 1, n * n)], [n, n])

  ! a row goes into a column, backwards, every second, of two dimensions and of three
  call clear()
  call MPI_Sendrecv(plate(3, :), n, MPI_INTEGER, next, 0, other(:, 5), n, MPI_INTEGER, previous, 0, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, ierr)
  call ok(ierr, 'a row into a column')
  call check(all(other(:, 5) == from(plate(3, :))), 'a row came wrong')
  call same(count(other /= -1), n, 'what a column has changed')
  call clear()
  call MPI_Sendrecv(plate(:, 2), n, MPI_INTEGER, next, 0, other(4, :), n, MPI_INTEGER, previous, 0, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, ierr)
  call check(all(other(4, :) == from(plate(:, 2))), 'a column came wrong into a row')
  call same(count(other /= -1), n, 'what a row has changed')

  ! likewise under the tools' names, each more than once
  do round = 1, 2
    call clear()
    call PMPI_Sendrecv(plate(3, :), n, MPI_INTEGER, next, 0, other(:, 5), n, MPI_INTEGER, previous, 0, MPI_COMM_WORLD, &
                       MPI_STATUS_IGNORE, ierr)
    call PMPI_Sendrecv(plate(:, 2), n, MPI_INTEGER, next, 0, other(4, :), n, MPI_INTEGER, previous, 0, MPI_COMM_WORLD, &
                       MPI_STATUS_IGNORE, ierr)
    call PMPI_Sendrecv(rank, 1, MPI_INTEGER, next, 0, other(1, 1), 1, MPI_INTEGER, previous, 0, MPI_COMM_WORLD, &
                       MPI_STATUS_IGNORE, ierr)
    call check(all(other(5:, 5) == from(plate(3, 5:))) .and. all(other(:3, 5) == from(plate(3, :3))), 'a row came wrong by PMPI')
    call check(all(other(4, :) == from(plate(:, 2))), 'a column came wrong by PMPI')
    call same(other(1, 1), previous, 'a number by PMPI')
    call same(count(other /= -1), 2 * n, 'what PMPI has changed')
  end do
  call clear()
  call MPI_Sendrecv(plate(n:1:-1, 1), n, MPI_INTEGER, next, 0, other(1, n:1:-2), n / 2, MPI_INTEGER, previous, 0, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call check(ierr /= MPI_SUCCESS, 'twelve elements fit into six')
  call MPI_Sendrecv(plate(n:1:-2, 1), n / 2, MPI_INTEGER, next, 0, other(1, n:1:-2), n / 2, MPI_INTEGER, previous, 0, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call check(all(other(1, n:1:-2) == from(plate(n:1:-2, 1))), 'a section that runs backwards came wrong')
  call clear()
  call MPI_Sendrecv(plate(2:11:3, 1:12:4), 12, MPI_INTEGER, next, 0, other(1:4, 2:4), 12, MPI_INTEGER, previous, 0, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call check(all(other(1:4, 2:4) == reshape(from(reshape(plate(2:11:3, 1:12:4), [12])), [4, 3])), 'two dimensions came wrong')
  call same(count(other /= -1), 12, 'what two dimensions have changed')
  cube = reshape([(1000 * rank + i, i = 1, 64)], [4, 4, 4])
  cubes = -1
  call MPI_Sendrecv(cube(1:3:2, 2:4:2, 1:4:3), 8, MPI_INTEGER, next, 0, cubes(2:4:2, 1:3:2, 2:3), 8, MPI_INTEGER, previous, 0, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call check(all(cubes(2:4:2, 1:3:2, 2:3) - 1000 * previous == cube(1:3:2, 2:4:2, 1:4:3) - 1000 * rank), 'three dimensions came wrong')
  call same(count(cubes /= -1), 8, 'what three dimensions have changed')

  ! fewer elements than the section has; a component; characters; a datatype over the section; a pointer
  call clear()
  call MPI_Sendrecv(plate(3, :), 5, MPI_INTEGER, next, 0, other(3, :), n, MPI_INTEGER, previous, 0, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, ierr)
  call check(all(other(3, :5) == from(plate(3, :5))) .and. all(other(3, 6:) == -1), 'a message shorter than the section')
  list%i = [(rank + i, i = 1, n)]
  list%x = 0
  got%i = -1
  got%x = 7
  call MPI_Sendrecv(list%i, n, MPI_INTEGER, next, 0, got(:)%i, n, MPI_INTEGER, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call check(all(got%i == [(previous + i, i = 1, n)]) .and. all(abs(got%x - 7) < 1e-9), 'a component came wrong')
  do i = 1, 6
    write (words(i), '(2i2)') rank, i
  end do
  words_in = 'xxxx'
  call MPI_Sendrecv(words(1:6:2)(2:3), 6, MPI_CHARACTER, next, 0, words_in(2:6:2)(1:2), 6, MPI_CHARACTER, previous, 0, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  do i = 1, 3
    write (words(i), '(i1, i1, "xx")') previous, 0
  end do
  call check(all(words_in(2:6:2)(1:1) == words(1)(1:1)) .and. all(words_in(1:5:2) == 'xxxx') .and. &
             all(words_in(2:6:2)(3:4) == 'xx'), 'substrings came wrong')
  call MPI_Type_vector(3, 1, 2, MPI_INTEGER, t, ierr)
  call MPI_Type_commit(t, ierr)
  call clear()
  call MPI_Sendrecv(plate(6, :), 1, t, next, 0, other(7, :), 3, MPI_INTEGER, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call check(all(other(7, :3) == from(plate(6, 1:5:2))), 'a datatype over a section took the wrong elements')
  call MPI_Sendrecv(plate(1:3, 1), 3, MPI_INTEGER, next, 0, other(9, :), 1, t, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call check(all(other(9, 1:5:2) == from(plate(1:3, 1))) .and. all(other(9, 2:4:2) == -1), 'a datatype into a section')
  store = rank
  every => store(2::3)
  call MPI_Sendrecv_replace(every, n, MPI_INTEGER, next, 0, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call check(all(store(2::3) == previous) .and. all(store(1::3) == rank) .and. all(store(3::3) == rank), 'a pointer came wrong')

  ! nonblocking and persistent: the sections stay in use after the call
  do round = 1, 2
    call clear()
    call MPI_Irecv(other(2, :), n, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, requests(1), ierr)
    call ok(ierr, 'MPI_Irecv into a section')
    if (round == 1) call MPI_Isend(plate(3, :), n, MPI_INTEGER, next, 1, MPI_COMM_WORLD, requests(2), ierr)
    if (round == 2) call MPI_Issend(plate(3, :), n, MPI_INTEGER, next, 1, MPI_COMM_WORLD, requests(2), ierr)
    call ok(ierr, 'MPI_Isend of a section')
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    call check(all(other(2, :) == from(plate(3, :))), 'a row came wrong without blocking')
    call same(count(other /= -1), n, 'what a row has changed without blocking')
  end do
  call clear()
  call MPI_Irecv(other(2, :), 1, t, previous, 1, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_Isend(plate(3, :), 1, t, next, 1, MPI_COMM_WORLD, requests(2), ierr)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  call check(all(other(2, 1:5:2) == from(plate(3, 1:5:2))), 'a datatype over a section came wrong without blocking')
  call same(count(other /= -1), 3, 'what a datatype over a section has changed')
  call MPI_Type_free(t, ierr)
  call MPI_Recv_init(other(4:9, 1), 6, MPI_INTEGER, previous, 2, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_Send_init(plate(1, 1:11:2), 6, MPI_INTEGER, next, 2, MPI_COMM_WORLD, requests(2), ierr)
  do round = 1, 3
    plate(1, :) = 10000 * rank + round
    call clear()
    call MPI_Startall(2, requests, ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    call check(all(other(4:9, 1) == 10000 * previous + round), 'a persistent section sends what it held at first')
  end do
  call MPI_Request_free(requests(1), ierr)
  call MPI_Request_free(requests(2), ierr)

  ! partitions of sections: parts of columns, of a row, of a column backwards; the receiver has others than the sender
  call partitioned(plate(1:n:2, 2:5), 4, 6_MPI_COUNT_KIND, other(3:10, 4:6), 3, 8_MPI_COUNT_KIND, 'columns')
  call check(all(reshape(other(3:10, 4:6), [24]) == from(reshape(plate(1:n:2, 2:5), [24]))), 'partitions that are columns came wrong')
  call same(count(other /= -1), 24, 'what partitions that are columns have changed')
  call partitioned(plate(5:5, :), 4, 3_MPI_COUNT_KIND, other(n:1:-1, 5:5), 6, 2_MPI_COUNT_KIND, 'parts of a row')
  call check(all(other(n:1:-1, 5) == from(plate(5, :))), 'partitions of a row came wrong')
  call same(count(other /= -1), n, 'what partitions of a row have changed')
  call MPI_Psend_init(plate(1:5, :), 3, 4_MPI_COUNT_KIND, MPI_INTEGER, next, 3, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), ierr)
  call fails(ierr, MPI_ERR_BUFFER, 'partitions that do not lie alike')
  call MPI_Error_string(ierr, sentence, position, i)
  call check(index(sentence, 'partitions') > 0, 'no sentence about partitions, but '//sentence)
  call MPI_Psend_init(plate(1:5, :), 13, 5_MPI_COUNT_KIND, MPI_INTEGER, next, 3, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), ierr)
  call check(ierr /= MPI_SUCCESS, 'thirteen partitions of a section of twelve')

  ! collectives
  call clear()
  other(2, :) = merge(5, -1, rank == 0)
  call MPI_Bcast(other(2, :), n, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  call check(all(other(2, :) == 5) .and. count(other /= -1) == n, 'MPI_Bcast of a row')
  other(3, :) = rank + 1
  call MPI_Allreduce(other(3, :), line(:), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(all(line == ranks * (ranks + 1) / 2), 'MPI_Allreduce of a row')
  call MPI_Allreduce(MPI_IN_PLACE, other(3, 1:n:2), n / 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(all(other(3, 1:n:2) == ranks * (ranks + 1) / 2) .and. all(other(3, 2:n:2) == rank + 1), 'MPI_Allreduce of a row in place')
  allocate (columns(2 * n, ranks))
  columns = -1
  line = rank
  call MPI_Allgather(line, n, MPI_INTEGER, columns(1:2 * n:2, :), n, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  do i = 1, ranks
    call check(all(columns(1:2 * n:2, i) == i - 1) .and. all(columns(2:2 * n:2, i) == -1), 'MPI_Allgather into a section')
  end do
  columns = -1
  call MPI_Gather(plate(2, :), n, MPI_INTEGER, columns(2:2 * n:2, :), n, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) then
    do i = 1, ranks
      call check(all(columns(2:2 * n:2, i) - 10000 * (i - 1) == plate(2, :)), 'MPI_Gather into a section')
    end do
  else
    call check(all(columns == -1), 'MPI_Gather has changed what is not the root''s')
  end if
  columns = -1
  call MPI_Iallgather(plate(2, :), n, MPI_INTEGER, columns(2:2 * n:2, :), n, MPI_INTEGER, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
  do i = 1, ranks
    call check(all(columns(2:2 * n:2, i) - 10000 * (i - 1) == plate(2, :) - 10000 * rank) .and. all(columns(1:2 * n:2, i) == -1), &
               'MPI_Iallgather into a section')
  end do
  call MPI_Alltoall(columns(2:2 * n:2, :), n, MPI_INTEGER, all_lines, n, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call check(all(all_lines(:, 1) == columns(2:2 * n:2, rank + 1)), 'MPI_Alltoall of a section')
  position = 0
  call MPI_Pack(plate(5, 1:n:3), 4, MPI_INTEGER, packed, 100, position, MPI_COMM_WORLD, ierr)
  call clear()
  position = 0
  call MPI_Unpack(packed, 100, position, other(5, 1:n:3), 4, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call check(all(other(5, 1:n:3) == plate(5, 1:n:3)) .and. count(other /= -1) == 4, 'MPI_Pack and MPI_Unpack of sections')

  ! nothing, and more than there is: in a copy, in a copy of what is no whole elements, by a datatype
  call MPI_Recv(other(3, 1:n:2), n, MPI_INTEGER, previous, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call fails(ierr, MPI_ERR_COUNT, 'twelve elements into a section of six')
  call MPI_Irecv(other(3, 1:n:2), n, MPI_INTEGER, previous, 8, MPI_COMM_WORLD, requests(1), ierr)
  call fails(ierr, MPI_ERR_COUNT, 'twelve elements into a section of six without blocking')
  call MPI_Type_vector(3, 1, 3, MPI_INTEGER, t, ierr)
  call MPI_Type_commit(t, ierr)
  call MPI_Irecv(other(3, 1:n:2), 1, t, previous, 8, MPI_COMM_WORLD, requests(1), ierr)
  call fails(ierr, MPI_ERR_COUNT, 'a datatype of seven elements into a section of six')
  call MPI_Send(plate(3, 1:n:2), 1, t, MPI_PROC_NULL, 8, MPI_COMM_WORLD, ierr)
  call fails(ierr, MPI_ERR_COUNT, 'a datatype of seven elements from a section of six')
  call MPI_Irecv(other(3, :), 2, t, MPI_PROC_NULL, 8, MPI_COMM_WORLD, requests(1), ierr)
  call fails(ierr, MPI_ERR_COUNT, 'two elements of a datatype that begin in a section of twelve')
  call MPI_Irecv(other(3, 1:7), 1, t, MPI_PROC_NULL, 8, MPI_COMM_WORLD, requests(1), ierr)
  call ok(ierr, 'a datatype of seven elements in a section of as many')
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
  call MPI_Type_free(t, ierr)
  call MPI_Send(plate(3, 1:0), 0, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, ierr)
  call ok(ierr, 'an empty section')
  call MPI_Send(plate(3, 1:4:2), -1, MPI_INTEGER, next, 0, MPI_COMM_WORLD, ierr)
  call fails(ierr, MPI_ERR_COUNT, 'a count of -1 for a section')
contains
  subroutine clear()
    other = -1
  end subroutine
  subroutine partitioned(mine, n_out, of_out, theirs, n_in, of_in, what) ! to the next rank, from the one before
    integer, asynchronous, intent(inout) :: mine(:, :), theirs(:, :)
    integer, intent(in) :: n_out, n_in
    integer(MPI_COUNT_KIND), intent(in) :: of_out, of_in
    character(len=*), intent(in) :: what
    logical :: arrived
    call clear()
    call MPI_Psend_init(mine, n_out, of_out, MPI_INTEGER, next, 3, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2), ierr)
    call ok(ierr, 'MPI_Psend_init of '//what)
    call MPI_Precv_init(theirs, n_in, of_in, MPI_INTEGER, previous, 3, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), ierr)
    call ok(ierr, 'MPI_Precv_init of '//what)
    call MPI_Startall(2, requests, ierr)
    do i = n_out - 1, 0, -1
      call MPI_Pready(i, requests(2), ierr)
      call ok(ierr, 'MPI_Pready of '//what)
    end do
    arrived = .false.
    do while (.not. arrived)
      call MPI_Parrived(requests(1), n_in - 1, arrived, ierr)
    end do
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    call ok(ierr, 'MPI_Waitall of '//what)
    call MPI_Request_free(requests(1), ierr)
    call MPI_Request_free(requests(2), ierr)
  end subroutine
  function from(mine) result(theirs) ! what the rank before has where this one has `mine`
    integer, intent(in) :: mine(:)
    integer :: theirs(ubound(mine, 1))
    theirs = mine + 10000 * (previous - rank)
  end function
end subroutine
