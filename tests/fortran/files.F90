! Files: opening, views, every kind of access, data representations of the program, error handlers.
#include "forms.h"
module file_procedures
  USE_MPI
  use checks
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
#if defined(KW_MPIF)
  include 'mpif.h'
#endif
  integer :: heard = 0, heard_code = 0, written = 0, read_back = 0, measured = 0
contains
  subroutine hear_file(file, code)
    HANDLE(MPI_File) :: file
    integer :: code
    call check(file /= MPI_FILE_NULL, 'the file that an error handler is given')
    heard = heard + 1
    heard_code = code
  end subroutine

  subroutine extent_of_ours(datatype, extent, extra, ierror)
    HANDLE(MPI_Datatype) :: datatype
    integer(MPI_ADDRESS_KIND) :: extent, extra, lower
    integer :: ierror
    call check(extra == 77, 'the extra state of an extent function')
    measured = measured + 1
    call MPI_Type_get_extent(datatype, lower, extent, ierror)
  end subroutine

#if defined(KW_F08)
  subroutine read_large(userbuf, datatype, count, filebuf, position, extra, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer(MPI_COUNT_KIND) :: count
    integer :: ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra
    integer, pointer :: memory(:), file(:)
    call c_f_pointer(userbuf, memory, [position + count])
    call c_f_pointer(filebuf, file, [count])
    memory(position + 1:position + count) = file(1:count) + 1
    ierror = MPI_SUCCESS
  end subroutine
#endif

  ! in the file stand negative numbers
#if defined(KW_F08)
  subroutine write_ours(userbuf, datatype, count, filebuf, position, extra, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra
    integer, pointer :: memory(:), file(:)
    call c_f_pointer(userbuf, memory, [int(position) + count])
    call c_f_pointer(filebuf, file, [count])
#else
  subroutine write_ours(memory, datatype, count, file, position, extra, ierror)
    integer :: memory(*), datatype, count, file(*), ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra
#endif
    call check(extra == 77 .and. datatype == MPI_INTEGER, 'what a writing conversion is given')
    written = written + count
    file(1:count) = -memory(position + 1:position + count)
    ierror = MPI_SUCCESS
  end subroutine

#if defined(KW_F08)
  subroutine read_ours(userbuf, datatype, count, filebuf, position, extra, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra
    integer, pointer :: memory(:), file(:)
    call c_f_pointer(userbuf, memory, [int(position) + count])
    call c_f_pointer(filebuf, file, [count])
#else
  subroutine read_ours(memory, datatype, count, file, position, extra, ierror)
    integer :: memory(*), datatype, count, file(*), ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra
#endif
    call check(extra == 77 .and. datatype == MPI_INTEGER, 'what a reading conversion is given')
    read_back = read_back + count
    memory(position + 1:position + count) = -file(1:count)
    ierror = MPI_SUCCESS
  end subroutine
end module

subroutine test_files()
  USE_MPI
  use checks
  use file_procedures, only: hear_file, heard, heard_code, extent_of_ours, write_ours, read_ours, written, read_back, measured
#if defined(KW_F08)
  use file_procedures, only: read_large
#endif
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 20
  integer :: rank, ranks, ierr, amode, i, place, length
  integer LASTING :: values(n), got(n)
  integer :: number(1)
  logical :: flag
  character(len=200) :: directory, name
  character(len=MPI_MAX_DATAREP_STRING) :: representation
  character(len=32) :: hint
  integer(MPI_OFFSET_KIND) :: at, size, zero
  integer(MPI_ADDRESS_KIND) :: extent, extra
  HANDLE(MPI_File) :: file
  HANDLE(MPI_Info) :: info
  HANDLE(MPI_Group) :: group
  HANDLE(MPI_Datatype) :: filetype, etype, back
  HANDLE(MPI_Errhandler) :: handler, found
  HANDLE(MPI_Request) :: request
  A_STATUS(status)

  zero = 0
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call get_environment_variable('TMPDIR', directory)
  if (directory == '') directory = '/tmp'
  call system_clock(number(1))
  call MPI_Bcast(number, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  write (name, '(a, "/kw fortran ", i0)') trim(directory), number(1)

  ! opening, and what a file tells of itself
  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, 'cb_buffer_size', '65536', ierr)
  call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, info, file, ierr)
  call fails(ierr, MPI_ERR_NO_SUCH_FILE, 'opening no file')
  call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR, info, file, ierr)
  call ok(ierr, 'MPI_File_open')
  call MPI_File_get_amode(file, amode, ierr)
  call same(amode, MPI_MODE_CREATE + MPI_MODE_RDWR, 'MPI_File_get_amode')
  call MPI_Info_free(info, ierr)
  call MPI_File_get_info(file, info, ierr)
  call MPI_Info_get(info, 'cb_buffer_size', 32, hint, flag, ierr)
  call check(flag .and. hint == '65536', 'MPI_File_get_info')
  call MPI_File_set_info(file, info, ierr)
  call ok(ierr, 'MPI_File_set_info')
  call MPI_Info_free(info, ierr)
  call MPI_File_get_group(file, group, ierr)
  call MPI_Group_size(group, length, ierr)
  call same(length, ranks, 'MPI_File_get_group')
  call MPI_Group_free(group, ierr)
  size = 400
  call MPI_File_set_size(file, size, ierr)
  call MPI_File_get_size(file, size, ierr)
  call same(size, 400_MPI_OFFSET_KIND, 'MPI_File_set_size')
  size = 800
  call MPI_File_preallocate(file, size, ierr)
  call ok(ierr, 'MPI_File_preallocate')
  call MPI_File_set_size(file, zero, ierr)
  call MPI_File_set_atomicity(file, .true., ierr)
  call MPI_File_get_atomicity(file, flag, ierr)
  call check(flag, 'MPI_File_get_atomicity')
  call MPI_File_set_atomicity(file, .false., ierr)
  call MPI_File_sync(file, ierr)
  call ok(ierr, 'MPI_File_sync')

  ! a view: every rank has every so manyth integer
  call MPI_Type_create_resized(MPI_INTEGER, 0_MPI_ADDRESS_KIND, int(4 * ranks, MPI_ADDRESS_KIND), filetype, ierr)
  call MPI_Type_commit(filetype, ierr)
  at = 4 * rank
  call MPI_File_set_view(file, at, MPI_INTEGER, filetype, 'native', MPI_INFO_NULL, ierr)
  call ok(ierr, 'MPI_File_set_view')
  call MPI_File_get_view(file, size, etype, back, representation, ierr)
  call check(size == at .and. etype == MPI_INTEGER .and. representation == 'native', 'MPI_File_get_view')
  call MPI_Type_free(back, ierr)
  call MPI_Type_free(filetype, ierr)
  call MPI_File_get_type_extent(file, MPI_INTEGER, extent, ierr)
  call same(int(extent), 4, 'MPI_File_get_type_extent')
  at = 3
  call MPI_File_get_byte_offset(file, at, size, ierr)
  call same(size, int(4 * rank + 12 * ranks, MPI_OFFSET_KIND), 'MPI_File_get_byte_offset')

  ! explicit offsets and the individual pointer
  values = [(1000 * rank + i, i = 1, n)]
  call MPI_File_write_at_all(file, zero, values, n, MPI_INTEGER, status, ierr)
  call counted(status, n, 'MPI_File_write_at_all')
  call clear()
  call MPI_File_read(file, got, n / 2, MPI_INTEGER, status, ierr)
  call counted(status, n / 2, 'MPI_File_read')
  call MPI_File_get_position(file, at, ierr)
  call same(at, int(n / 2, MPI_OFFSET_KIND), 'MPI_File_get_position')
  call MPI_File_iread(file, got(n / 2 + 1), n / 2, MPI_INTEGER, request, ierr)
  call MPI_Wait(request, status, ierr)
  call counted(status, n / 2, 'MPI_File_iread')
  call came('MPI_File_read and iread')
  at = -5
  call MPI_File_seek(file, at, MPI_SEEK_CUR, ierr)
  call MPI_File_write_all(file, values, 5, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
  call ok(ierr, 'MPI_File_write_all')
  call clear()
  at = n - 5
  call MPI_File_iread_at(file, at, got, 5, MPI_INTEGER, request, ierr)
  call MPI_Wait(request, status, ierr)
  call check(all(got(:5) == values(:5)) .and. all(got(6:) == -1), 'MPI_File_iread_at')

  ! split collective access
  call clear()
  call MPI_File_write_at_all_begin(file, zero, values, n, MPI_INTEGER, ierr)
  call MPI_File_write_at_all_end(file, values, status, ierr)
  call counted(status, n, 'MPI_File_write_at_all_end')
  call MPI_File_read_at_all_begin(file, zero, got, n, MPI_INTEGER, ierr)
  call MPI_File_read_at_all_end(file, got, status, ierr)
  call counted(status, n, 'MPI_File_read_at_all_end')
  call came('a split read')

  ! the shared pointer
  call MPI_File_set_view(file, zero, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierr)
  call MPI_File_write_ordered(file, values, rank + 1, MPI_INTEGER, status, ierr)
  call counted(status, rank + 1, 'MPI_File_write_ordered')
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_File_get_position_shared(file, at, ierr)
  call same(at, int(ranks * (ranks + 1) / 2, MPI_OFFSET_KIND), 'MPI_File_get_position_shared')
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_File_seek_shared(file, zero, MPI_SEEK_SET, ierr)
  call clear()
  call MPI_File_read_ordered(file, got, rank + 1, MPI_INTEGER, status, ierr)
  call check(all(got(:rank + 1) == values(:rank + 1)), 'MPI_File_read_ordered')
  call MPI_File_write_shared(file, values, 1, MPI_INTEGER, status, ierr)
  call counted(status, 1, 'MPI_File_write_shared')
  call MPI_Barrier(MPI_COMM_WORLD, ierr)

  ! error handlers
  call MPI_File_create_errhandler(hear_file, handler, ierr)
  call MPI_File_set_errhandler(file, handler, ierr)
  call MPI_File_get_errhandler(file, found, ierr)
  call check(found == handler, 'MPI_File_get_errhandler')
  call MPI_Errhandler_free(found, ierr)
  at = -1
  call MPI_File_seek(file, at, MPI_SEEK_SET, ierr)
  call fails(ierr, MPI_ERR_ARG, 'a seek before the file')
  call same(heard, 1, 'the calls of the handler of a file')
  call fails(heard_code, MPI_ERR_ARG, 'what the handler of a file was told')
  call MPI_Errhandler_free(handler, ierr)
  call MPI_File_set_errhandler(file, MPI_ERRORS_RETURN, ierr)

  ! data representations
  extra = 77
  call MPI_Register_datarep('negative', read_ours, write_ours, extent_of_ours, extra, ierr)
  call ok(ierr, 'MPI_Register_datarep')
  call MPI_Register_datarep('negative', read_ours, write_ours, extent_of_ours, extra, ierr)
  call fails(ierr, MPI_ERR_DUP_DATAREP, 'a data representation that is there')
  call MPI_Register_datarep('as it is', MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of_ours, extra, ierr)
  call ok(ierr, 'MPI_Register_datarep without conversions')
#if defined(KW_F08) && !defined(KW_FOREIGN)
  call MPI_Register_datarep_c('large', read_large, MPI_CONVERSION_FN_NULL_C, extent_of_ours, extra, ierr)
  call ok(ierr, 'MPI_Register_datarep_c')
#endif
  call MPI_File_set_view(file, zero, MPI_INTEGER, MPI_INTEGER, 'unheard of', MPI_INFO_NULL, ierr)
  call fails(ierr, MPI_ERR_UNSUPPORTED_DATAREP, 'a data representation that is not there')
  call MPI_File_set_view(file, zero, MPI_INTEGER, MPI_INTEGER, 'negative', MPI_INFO_NULL, ierr)
  call ok(ierr, 'a view with a data representation of ours')
  call check(measured > 0, 'the extent function is not called')
  call MPI_File_get_view(file, size, etype, filetype, representation, ierr)
  call check(representation == 'negative', 'the name of a data representation')
  at = n * rank
  call MPI_File_write_at(file, at, values, n, MPI_INTEGER, status, ierr)
  call counted(status, n, 'writing with a data representation of ours')
  call clear()
  call MPI_File_read_at(file, at, got, n, MPI_INTEGER, status, ierr)
  call counted(status, n, 'reading with a data representation of ours')
  call came('reading with a data representation of ours')
  call check(written == n .and. read_back == n, 'the calls of conversions')
  call MPI_File_set_view(file, zero, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierr)
  call MPI_File_read_at(file, at, got, n, MPI_INTEGER, status, ierr)
  call check(all(got == -values), 'what a data representation of ours leaves in the file')
#if defined(KW_F08) && !defined(KW_FOREIGN)
  call MPI_File_set_view(file, zero, MPI_INTEGER, MPI_INTEGER, 'large', MPI_INFO_NULL, ierr)
  call MPI_File_read_at(file, at, got, n, MPI_INTEGER, status, ierr)
  call check(all(got == 1 - values), 'a data representation with large counts')
#endif
  call MPI_File_set_view(file, zero, MPI_INTEGER, MPI_INTEGER, 'external32', MPI_INFO_NULL, ierr)
  call MPI_File_write_at_all(file, at, values, n, MPI_INTEGER, status, ierr)
  call clear()
  call MPI_File_read_at_all(file, at, got, n, MPI_INTEGER, status, ierr)
  call came('external32')
#if !defined(KW_MPIF) && !defined(KW_FOREIGN)
  call test_file_sections(file)
#endif
  call MPI_File_set_view(file, zero, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierr)
  call test_file_calls(file)

  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_File_close(file, ierr)
  call ok(ierr, 'MPI_File_close')
  call check(file == MPI_FILE_NULL, 'a closed file is not null')
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  place = 0
  if (rank == 0) call MPI_File_delete(name, MPI_INFO_NULL, place)
  call ok(place, 'MPI_File_delete')

contains
  subroutine clear()
    got = -1
  end subroutine

  subroutine came(what)
    character(len=*), intent(in) :: what
    call check(all(got == values), what//' gives something else than what was written')
  end subroutine

  subroutine counted(seen, want, what)
    A_STATUS(seen)
    integer, intent(in) :: want
    character(len=*), intent(in) :: what
    integer :: found_count
    call ok(ierr, what)
    call MPI_Get_count(seen, MPI_INTEGER, found_count, ierr)
    call same(found_count, want, 'the count of '//what)
  end subroutine
end subroutine

#if !defined(KW_MPIF) && !defined(KW_FOREIGN)
! Array sections that are not contiguous: blocking, nonblocking, split.
subroutine test_file_sections(file)
  USE_MPI
  use checks
  implicit none
  integer, parameter :: n = 30
  HANDLE(MPI_File) :: file
  HANDLE(MPI_Request) :: request
  integer, asynchronous :: plate(n, n), other(n, n)
  character(len=7), asynchronous :: words(n), words_in(n)
  integer :: rank, ierr, i
  integer(MPI_OFFSET_KIND) :: at, zero

  zero = 0
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_File_set_view(file, zero, MPI_BYTE, MPI_BYTE, 'native', MPI_INFO_NULL, ierr)
  plate = reshape([(10000 * rank + i, i = 1, n * n)], [n, n])
  at = 10000 * rank
  other = -1
  call MPI_File_write_at(file, at, plate(3, :), n, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
  call ok(ierr, 'writing a row')
  call MPI_File_read_at_all(file, at, other(7, :), n, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
  call check(all(other(7, :) == plate(3, :)) .and. count(other /= -1) == n, 'reading a row')
  other = -1
  call MPI_File_iwrite_at_all(file, at, plate(4, :), n, MPI_INTEGER, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPI_File_iread_at(file, at, other(::2, 9), n / 2, MPI_INTEGER, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call check(all(other(::2, 9) == plate(4, :n / 2)) .and. count(other /= -1) == n / 2, 'a nonblocking read of a section')
  other = -1
  call MPI_File_write_at_all_begin(file, at, plate(5, :), n, MPI_INTEGER, ierr)
  call MPI_File_write_at_all_end(file, plate(5, :), MPI_STATUS_IGNORE, ierr)
  call ok(ierr, 'a split write of a section')
  call MPI_File_read_at_all_begin(file, at, other(2, :), n, MPI_INTEGER, ierr)
  call MPI_File_read_at_all_end(file, other(2, :), MPI_STATUS_IGNORE, ierr)
  call check(all(other(2, :) == plate(5, :)) .and. count(other /= -1) == n, 'a split read of a section')
  ! elements that no datatype of the call fits, so that MPI gets a copy: integers over words of seven characters
  words = [(repeat(char(64 + i), 7), i = 1, n)]
  words_in = '-------'
  call MPI_File_write_at_all_begin(file, at, words(::2), 7 * n / 2 / 4, MPI_INTEGER, ierr)
  call ok(ierr, 'a split write of a section that is copied')
  call MPI_File_write_at_all_end(file, words(::2), MPI_STATUS_IGNORE, ierr)
  call MPI_File_read_at_all_begin(file, at, words_in(::2), 7 * n / 2 / 4, MPI_INTEGER, ierr)
  call MPI_File_read_at_all_end(file, words_in(::2), MPI_STATUS_IGNORE, ierr)
  call ok(ierr, 'a split read of a section that is copied')
  call check(all(words_in(1:27:2) == words(1:27:2)) .and. all(words_in(2::2) == '-------'), 'a split read of words')
  call MPI_File_iread_at(file, at, words_in(2::2), 7 * n / 2 / 4, MPI_INTEGER, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call check(all(words_in(2:28:2) == words(1:27:2)), 'a nonblocking read of words')
end subroutine
#endif

! Every access once, in each form.
subroutine test_file_calls(file)
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 10
  HANDLE(MPI_File) :: file
  HANDLE(MPI_Request) :: request
  integer LASTING :: values(n), got(n)
  integer :: ierr, i, round, ranks
  integer(MPI_OFFSET_KIND) :: zero

  zero = 0
  values = 0
  round = 0
  got = -1
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call next()
#define HOWMANY n
#include "file_calls.h"
#if defined(KW_F08) && !defined(KW_FOREIGN)
#undef HOWMANY
#define HOWMANY int(n, MPI_COUNT_KIND)
#include "file_calls.h"
#endif
contains
  ! other values, which all ranks have
  subroutine next()
    call MPI_Barrier(MPI_COMM_WORLD, i)
    round = round + 1
    values = [(1000 * round + i, i = 1, n)]
    got = -1
  end subroutine

  subroutine wrote(what)
    character(len=*), intent(in) :: what
    call ok(ierr, what)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
  end subroutine

  subroutine came(what)
    character(len=*), intent(in) :: what
    call ok(ierr, what)
    call check(all(got == values), what//' gives something else than what was written')
    call next()
  end subroutine

  subroutine back()
    call MPI_File_seek(file, zero, MPI_SEEK_SET, ierr)
  end subroutine

  subroutine shared_back()
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_File_seek_shared(file, zero, MPI_SEEK_SET, ierr)
    call ok(ierr, 'MPI_File_seek_shared')
  end subroutine
end subroutine
