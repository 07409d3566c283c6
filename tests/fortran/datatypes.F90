! Datatypes: each constructor by a message to oneself, packing, envelopes, addresses, MPI_BOTTOM, names.
#include "forms.h"
subroutine test_datatypes()
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 12
  integer :: a(n), b(n), i, ierr, size, position, lengths(3), numbers(3), integers, addresses, datatypes, combiner
  integer :: sizes(2), subsizes(2), starts(2), one, two, length, values(8)
  character :: packed(200)
  character(len=MPI_MAX_OBJECT_NAME) :: name
  character(len=5) :: short
  integer(MPI_ADDRESS_KIND) :: places(3), lb, extent, here_is, there, shift, position_external, bytes
  integer(MPI_COUNT_KIND) :: big
  HANDLE(MPI_Datatype) :: t, u, types(3), back(3)
  A_STATUS(status)

  a = [(i, i = 1, n)]
  call MPI_Type_contiguous(3, MPI_INTEGER, t, ierr)
  call moved(t, 1, [1, 2, 3], 'MPI_Type_contiguous')
  call MPI_Type_vector(3, 1, 2, MPI_INTEGER, t, ierr)
  call moved(t, 1, [1, 3, 5], 'MPI_Type_vector')
  call MPI_Type_create_hvector(2, 2, int(16, MPI_ADDRESS_KIND), MPI_INTEGER, t, ierr)
  call moved(t, 1, [1, 2, 5, 6], 'MPI_Type_create_hvector')
  lengths = [1, 2, 1]
  numbers = [0, 4, 8]
  call MPI_Type_indexed(3, lengths, numbers, MPI_INTEGER, t, ierr)
  call moved(t, 1, [1, 5, 6, 9], 'MPI_Type_indexed')
  places = 4 * numbers
  call MPI_Type_create_hindexed(3, lengths, places, MPI_INTEGER, t, ierr)
  call moved(t, 1, [1, 5, 6, 9], 'MPI_Type_create_hindexed')
  call MPI_Type_create_indexed_block(3, 2, numbers, MPI_INTEGER, t, ierr)
  call moved(t, 1, [1, 2, 5, 6, 9, 10], 'MPI_Type_create_indexed_block')
  call MPI_Type_create_hindexed_block(3, 1, places, MPI_INTEGER, t, ierr)
  call moved(t, 1, [1, 5, 9], 'MPI_Type_create_hindexed_block')
  types = MPI_INTEGER
  call MPI_Type_create_struct(3, lengths, places, types, t, ierr)
  call moved(t, 1, [1, 5, 6, 9], 'MPI_Type_create_struct')
  call MPI_Type_create_resized(MPI_INTEGER, int(0, MPI_ADDRESS_KIND), int(12, MPI_ADDRESS_KIND), t, ierr)
  call moved(t, 3, [1, 4, 7], 'MPI_Type_create_resized')
  sizes = [4, 3]
  subsizes = [2, 2]
  starts = [1, 1]
  call MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_INTEGER, t, ierr)
  call moved(t, 1, [6, 7, 10, 11], 'MPI_Type_create_subarray')
  call MPI_Type_create_darray(2, 0, 1, [n], [MPI_DISTRIBUTE_BLOCK], [MPI_DISTRIBUTE_DFLT_DARG], [2], MPI_ORDER_FORTRAN, &
                              MPI_INTEGER, t, ierr)
  call moved(t, 1, [1, 2, 3, 4, 5, 6], 'MPI_Type_create_darray')
  call MPI_Type_dup(MPI_INTEGER, t, ierr)
  call moved(t, 2, [1, 2], 'MPI_Type_dup')

  ! what a type is
  call MPI_Type_vector(2, 1, 3, MPI_REAL, t, ierr)
  call MPI_Type_size(t, size, ierr)
  call same(size, 8, 'MPI_Type_size')
  call MPI_Type_get_extent(t, lb, extent, ierr)
  call check(lb == 0 .and. extent == 16, 'MPI_Type_get_extent')
  call MPI_Type_get_true_extent(t, lb, extent, ierr)
  call check(lb == 0 .and. extent == 16, 'MPI_Type_get_true_extent')
  call MPI_Type_size_x(t, big, ierr)
  call same(big, 8_int64, 'MPI_Type_size_x')
  call MPI_Type_get_envelope(t, integers, addresses, datatypes, combiner, ierr)
  call check(integers == 3 .and. addresses == 0 .and. datatypes == 1 .and. combiner == MPI_COMBINER_VECTOR, 'MPI_Type_get_envelope')
  call MPI_Type_get_contents(t, 3, 0, 1, values, places, back, ierr)
  call check(all(values(:3) == [2, 1, 3]) .and. back(1) == MPI_REAL, 'MPI_Type_get_contents')
  call MPI_Type_set_name(t, 'every third  ', ierr)
  name = repeat('x', len(name))
  call MPI_Type_get_name(t, name, length, ierr)
  call check(name == 'every third' .and. length == 11, 'the name of a type is '//name)
  short = 'xxxxx'
  call MPI_Type_get_name(MPI_INTEGER, short, length, ierr)
  call check(short == 'MPI_I', 'a name that does not fit is '//short)
  call MPI_Type_free(t, ierr)
  call check(t == MPI_DATATYPE_NULL, 'a freed type is not null')

  ! packing
  position = 0
  call MPI_Pack(a, 3, MPI_INTEGER, packed, 200, position, MPI_COMM_WORLD, ierr)
  call same(position, 12, 'the position after MPI_Pack')
  position = 4
  call MPI_Unpack(packed, 200, position, b, 2, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call check(all(b(:2) == [2, 3]) .and. position == 12, 'MPI_Unpack')
  call MPI_Pack_external_size('external32', 3, MPI_INTEGER, bytes, ierr)
  call check(bytes == 12, 'MPI_Pack_external_size')
  position_external = 0
  call MPI_Pack_external('external32', a, 3, MPI_INTEGER, packed, int(200, MPI_ADDRESS_KIND), position_external, ierr)
  call check(position_external == 12 .and. ichar(packed(4)) == 1 .and. ichar(packed(1)) == 0, 'MPI_Pack_external')
  position_external = 0
  call MPI_Unpack_external('external32', packed, int(200, MPI_ADDRESS_KIND), position_external, b, 3, MPI_INTEGER, ierr)
  call check(all(b(:3) == [1, 2, 3]), 'MPI_Unpack_external')

  ! addresses: two variables that lie anywhere, from the bottom of memory
  one = 0
  two = 0
  call MPI_Get_address(one, places(1), ierr)
  call MPI_Get_address(two, places(2), ierr)
  call MPI_Get_address(a(1), here_is, ierr)
  call MPI_Get_address(a(3), there, ierr)
  call check(MPI_Aint_diff(there, here_is) == 8, 'MPI_Aint_diff')
  shift = 8
  call check(MPI_Aint_add(here_is, shift) == there, 'MPI_Aint_add')
  call MPI_Type_create_hindexed(2, [1, 1], places, MPI_INTEGER, t, ierr)
  call MPI_Type_commit(t, ierr)
  call MPI_Sendrecv(a, 2, MPI_INTEGER, 0, 0, MPI_BOTTOM, 1, t, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE, ierr)
  call ok(ierr, 'a receive at MPI_BOTTOM')
  call MPI_F_sync_reg(one)
  call MPI_F_sync_reg(two)
  call check(one == 1 .and. two == 2, 'what was received at MPI_BOTTOM is not there')
  call MPI_Type_free(t, ierr)

  ! what is wrong is told
  call MPI_Type_contiguous(-1, MPI_INTEGER, t, ierr)
  call fails(ierr, MPI_ERR_COUNT, 'MPI_Type_contiguous of -1')
  t = MPI_INTEGER
  call MPI_Type_free(t, ierr)
  call fails(ierr, MPI_ERR_TYPE, 'freeing MPI_INTEGER')
  call MPI_Type_vector(1, 1, 1, MPI_INTEGER, u, ierr)
  call MPI_Send(a, 1, u, 0, 0, MPI_COMM_SELF, ierr)
  call fails(ierr, MPI_ERR_TYPE, 'a type that is not committed')
  call MPI_Type_free(u, ierr)
contains
  subroutine moved(t, count, wanted, what)
    HANDLE(MPI_Datatype), intent(inout) :: t
    integer, intent(in) :: count, wanted(:)
    character(len=*), intent(in) :: what
    integer :: ierr, items
    items = size_of_list(wanted)
    call MPI_Type_commit(t, ierr)
    call ok(ierr, what)
    b = -1
    call MPI_Sendrecv(a, count, t, 0, 1, b, items, MPI_INTEGER, 0, 1, MPI_COMM_SELF, status, ierr)
    call ok(ierr, 'a message of '//what)
    call check(all(b(:items) == wanted), what//' takes the wrong elements')
    call check(all(b(items + 1:) == -1), what//' takes too many elements')
    call MPI_Type_free(t, ierr)
  end subroutine
  integer function size_of_list(list)
    integer, intent(in) :: list(:)
    size_of_list = ubound(list, 1)
  end function
end subroutine
