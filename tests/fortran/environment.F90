! The environment: versions, names, clocks, error classes and their texts, memory, constants.
#include "forms.h"
subroutine test_environment()
  USE_MPI
  use checks
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer, c_associated
  implicit none
  INCLUDE_MPI
  integer, parameter :: half = selected_real_kind(3)
  integer :: ierr, version, subversion, length, class, code, level, got
  logical :: flag
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: library
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  character(len=MPI_MAX_ERROR_STRING) :: text
  character(len=4) :: short
  double precision :: before
  HANDLE(MPI_Info) :: info
#if !defined(KW_MPIF)
  type(c_ptr) :: memory
  integer, pointer :: words(:)
#endif

  call MPI_Get_version(version, subversion, ierr)
  call check(version == MPI_VERSION .and. subversion == MPI_SUBVERSION, 'MPI_Get_version')
  library = repeat('x', len(library))
  call MPI_Get_library_version(library, length, ierr)
  call check(len_trim(library) == length, 'the library version is not padded by blanks')
  name = repeat('x', len(name))
  call MPI_Get_processor_name(name, length, ierr)
  call check(length > 0 .and. len_trim(name) == length, 'the name of the processor is '//name)
  before = MPI_Wtime()
  call check(MPI_Wtime() >= before .and. before > 0, 'MPI_Wtime')
  call check(MPI_Wtick() > 0 .and. MPI_Wtick() < 1, 'MPI_Wtick')
  call MPI_Query_thread(level, ierr)
  call check(level == MPI_THREAD_SINGLE .or. level == MPI_THREAD_FUNNELED .or. level == MPI_THREAD_SERIALIZED &
             .or. level == MPI_THREAD_MULTIPLE, 'MPI_Query_thread')
  call MPI_Is_thread_main(flag, ierr)
  call check(flag, 'MPI_Is_thread_main')

  ! errors of the program
  call MPI_Add_error_class(class, ierr)
  call check(class > MPI_ERR_LASTCODE, 'a new class is not beyond the last one')
  call MPI_Add_error_code(class, code, ierr)
  call MPI_Add_error_string(code, 'our own trouble   ', ierr)
  call MPI_Error_class(code, got, ierr)
  call same(got, class, 'the class of a new code')
  text = repeat('x', len(text))
  call MPI_Error_string(code, text, length, ierr)
  call check(text == 'our own trouble' .and. length == 15, 'the text of a new code is '//text(:40))
  call MPI_Remove_error_string(code, ierr)
  call ok(ierr, 'MPI_Remove_error_string')
  call MPI_Remove_error_code(code, ierr)
  call ok(ierr, 'MPI_Remove_error_code')
  call MPI_Remove_error_class(class, ierr)
  call ok(ierr, 'MPI_Remove_error_class')
  call MPI_Error_string(MPI_ERR_RANK, text, length, ierr)
  call check(length > 10 .and. len_trim(text) == length, 'the text of MPI_ERR_RANK')
  call MPI_Error_string(MPI_ERR_RANK, short, length, ierr)
  call check(short == text(:4), 'a text that does not fit')
  call MPI_Error_string(-77, text, length, ierr)
  call check(ierr /= MPI_SUCCESS, 'the text of no code')

  ! memory
#if !defined(KW_MPIF)
  call MPI_Alloc_mem(int(400, MPI_ADDRESS_KIND), MPI_INFO_NULL, memory, ierr)
  call ok(ierr, 'MPI_Alloc_mem')
  call check(c_associated(memory), 'MPI_Alloc_mem gives nothing')
  call c_f_pointer(memory, words, [100])
  words = 3
  call check(sum(words) == 300, 'allocated memory does not hold what was written')
  call MPI_Free_mem(words, ierr)
  call ok(ierr, 'MPI_Free_mem')
#endif
  call MPI_Info_create_env(info, ierr)
  call ok(ierr, 'MPI_Info_create_env')
  call MPI_Info_free(info, ierr)
  call MPI_Pcontrol(1)
  call MPI_Abi_get_version(version, subversion, ierr)
  call check(version == MPI_ABI_VERSION .and. subversion == MPI_ABI_SUBVERSION, 'MPI_Abi_get_version')
  call MPI_Abi_get_info(info, ierr)
  call ok(ierr, 'MPI_Abi_get_info')
  call MPI_Info_free(info, ierr)
  call MPI_Abi_get_fortran_info(info, ierr)
  call ok(ierr, 'MPI_Abi_get_fortran_info')
  call MPI_Info_get(info, 'mpi_integer_size', 4, short, flag, ierr)
  call check(flag .and. short == '4', 'the size of INTEGER that the library knows is '//short)
#if !defined(KW_FOREIGN)
  call told('mpi_integer16_supported', selected_int_kind(38) > 0)
  call told('mpi_real16_supported', selected_real_kind(33) > 0)
  call told('mpi_complex4_supported', storage_size(real(0, half)) == 16)
#endif
  call MPI_Info_free(info, ierr)

  ! what the interface promises
#if defined(KW_MPIF) || defined(KW_FOREIGN)
  call check(.not. MPI_SUBARRAYS_SUPPORTED, 'MPI_SUBARRAYS_SUPPORTED of mpif.h or of another ABI')
  call check(.not. MPI_ASYNC_PROTECTS_NONBLOCKING, 'MPI_ASYNC_PROTECTS_NONBLOCKING of mpif.h or of another ABI')
#else
  call check(MPI_SUBARRAYS_SUPPORTED, 'MPI_SUBARRAYS_SUPPORTED')
  call check(MPI_ASYNC_PROTECTS_NONBLOCKING, 'MPI_ASYNC_PROTECTS_NONBLOCKING')
#endif
  call same(MPI_SUCCESS, 0, 'MPI_SUCCESS')
  call check(MPI_ADDRESS_KIND > 0 .and. MPI_OFFSET_KIND > 0 .and. MPI_COUNT_KIND > 0 .and. MPI_INTEGER_KIND == kind(1), 'the kinds')
#if !defined(KW_FOREIGN)
  call check(MPI_MAX_OBJECT_NAME == 127 .and. MPI_MAX_ERROR_STRING == 511, 'lengths of strings are one less than in C')
#endif
contains
  subroutine told(key, there) ! what the library was told of this compiler
    character(len=*), intent(in) :: key
    logical, intent(in) :: there
    character(len=5) :: value
    call MPI_Info_get(info, key, 5, value, flag, ierr)
    call check(flag .and. (value == 'true') .eqv. there, 'what the library knows of '//key//' is '//value)
  end subroutine
end subroutine
