! Fortran's own types: each predefined datatype by a message and a reduction, types by precision and range, MPI_Sizeof, logicals.
#include "forms.h"
subroutine test_numbers()
  USE_MPI
  use checks
  use, intrinsic :: iso_fortran_env, only: int8, int16, real32, real64
  implicit none
  INCLUDE_MPI
  integer, parameter :: fine = selected_real_kind(12, 100), wide = selected_int_kind(15)
  integer :: ierr, size, ranks, rank, combiner, integers, addresses, datatypes, values(2)
  logical :: yes, all_true, one_true, list(2)
  integer(int8) :: i8
  integer(int16) :: i16
  integer(int64) :: i64
  real(real32) :: r32
  real(real64) :: r64
  complex(real32) :: c32, c32s(2)
  complex(real64) :: c64
  real(fine) :: x, sum
  complex(fine) :: z
  integer(wide) :: w, wsum
  real :: pair(2), best(2)
  double precision :: dpair(2), dbest(2)
  integer :: ipair(2), ibest(2)
  HANDLE(MPI_Datatype) :: t, again
  integer(MPI_ADDRESS_KIND) :: nothing(1)
  HANDLE(MPI_Datatype) :: none(1)

  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call sized(MPI_INTEGER, storage_size(1) / 8, 'MPI_INTEGER')
  call sized(MPI_REAL, storage_size(1.) / 8, 'MPI_REAL')
  call sized(MPI_DOUBLE_PRECISION, storage_size(1d0) / 8, 'MPI_DOUBLE_PRECISION')
  call sized(MPI_COMPLEX, storage_size((1., 1.)) / 8, 'MPI_COMPLEX')
  call sized(MPI_DOUBLE_COMPLEX, 16, 'MPI_DOUBLE_COMPLEX')
  call sized(MPI_LOGICAL, storage_size(.true.) / 8, 'MPI_LOGICAL')
  call sized(MPI_CHARACTER, 1, 'MPI_CHARACTER')
  call sized(MPI_INTEGER1, 1, 'MPI_INTEGER1')
  call sized(MPI_INTEGER2, 2, 'MPI_INTEGER2')
  call sized(MPI_INTEGER4, 4, 'MPI_INTEGER4')
  call sized(MPI_INTEGER8, 8, 'MPI_INTEGER8')
  call sized(MPI_REAL4, 4, 'MPI_REAL4')
  call sized(MPI_REAL8, 8, 'MPI_REAL8')
  call sized(MPI_COMPLEX8, 8, 'MPI_COMPLEX8')
  call sized(MPI_COMPLEX16, 16, 'MPI_COMPLEX16')
  call sized(MPI_2REAL, 8, 'MPI_2REAL')
  call sized(MPI_2DOUBLE_PRECISION, 16, 'MPI_2DOUBLE_PRECISION')
  call sized(MPI_2INTEGER, 8, 'MPI_2INTEGER')
  call sized(MPI_AINT, storage_size(nothing) / 8, 'MPI_AINT')
  call sized(MPI_PACKED, 1, 'MPI_PACKED')

  ! sums of every kind
  i8 = 1
  call MPI_Allreduce(MPI_IN_PLACE, i8, 1, MPI_INTEGER1, MPI_SUM, MPI_COMM_WORLD, ierr)
  call same(int(i8), ranks, 'a sum of MPI_INTEGER1')
  i16 = 1
  call MPI_Allreduce(MPI_IN_PLACE, i16, 1, MPI_INTEGER2, MPI_SUM, MPI_COMM_WORLD, ierr)
  call same(int(i16), ranks, 'a sum of MPI_INTEGER2')
  i64 = 2_int64**40
  call MPI_Allreduce(MPI_IN_PLACE, i64, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD, ierr)
  call same(i64, ranks * 2_int64**40, 'a sum of MPI_INTEGER8')
  r32 = 1.5
  call MPI_Allreduce(MPI_IN_PLACE, r32, 1, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(abs(r32 - 1.5 * ranks) < 1e-6, 'a sum of MPI_REAL4')
  r64 = 1.5
  call MPI_Allreduce(MPI_IN_PLACE, r64, 1, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(abs(r64 - 1.5 * ranks) < 1e-12, 'a sum of MPI_REAL8')
  c32 = (1., 2.)
  call MPI_Allreduce(MPI_IN_PLACE, c32, 1, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(abs(c32 - (1., 2.) * ranks) < 1e-6, 'a sum of MPI_COMPLEX')
  c64 = (0d0, 1d0)
  call MPI_Allreduce(MPI_IN_PLACE, c64, 1, MPI_DOUBLE_COMPLEX, MPI_PROD, MPI_COMM_WORLD, ierr)
  call check(abs(c64 - (0d0, 1d0)**ranks) < 1e-12, 'a product of MPI_DOUBLE_COMPLEX')
  pair = [real(-rank), real(rank)]
  call MPI_Allreduce(pair, best, 1, MPI_2REAL, MPI_MINLOC, MPI_COMM_WORLD, ierr)
  call check(nint(best(2)) == ranks - 1, 'MPI_MINLOC of MPI_2REAL')
  dpair = [-rank, rank]
  call MPI_Allreduce(dpair, dbest, 1, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, MPI_COMM_WORLD, ierr)
  call check(nint(dbest(2)) == 0, 'MPI_MAXLOC of MPI_2DOUBLE_PRECISION')
  ipair = [7, rank]
  call MPI_Allreduce(ipair, ibest, 1, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD, ierr)
  call check(all(ibest == [7, 0]), 'MPI_MAXLOC of MPI_2INTEGER')
  c32s = [(1., 1.), (2., 2.)]
  call MPI_Bcast(c32s, 2, MPI_COMPLEX8, 0, MPI_COMM_WORLD, ierr)
  call ok(ierr, 'MPI_Bcast of MPI_COMPLEX8')

  ! truth crosses as this compiler writes it
  yes = rank == 0
  call MPI_Allreduce(yes, one_true, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
  call check(one_true, 'MPI_LOR')
  call MPI_Allreduce(yes, all_true, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
  call check(all_true .eqv. ranks == 1, 'MPI_LAND')
  list = [.true., rank > 0]
  call MPI_Allreduce(MPI_IN_PLACE, list, 2, MPI_LOGICAL, MPI_LXOR, MPI_COMM_WORLD, ierr)
  call check((list(1) .eqv. mod(ranks, 2) == 1) .and. (list(2) .eqv. mod(ranks - 1, 2) == 1), 'MPI_LXOR')
  call check(count([one_true, .not. one_true]) == 1, 'a logical that MPI has written is neither true nor false')
  call MPI_Initialized(yes, ierr)
  call check(yes .eqv. .true., 'MPI_Initialized')
  call MPI_Finalized(yes, ierr)
  call check(yes .eqv. .false., 'MPI_Finalized')

  ! types by precision and range
  call MPI_Type_create_f90_real(12, 100, t, ierr)
  call ok(ierr, 'MPI_Type_create_f90_real')
  call sized(t, storage_size(x) / 8, 'a real of 12 digits')
  call MPI_Type_create_f90_real(12, 100, again, ierr)
  call check(t == again, 'the same precision and range give two types')
  x = 0.25_fine
  call MPI_Allreduce(x, sum, 1, t, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(abs(sum - 0.25_fine * ranks) < 1e-12_fine, 'a sum of reals by precision')
  call MPI_Type_get_envelope(t, integers, addresses, datatypes, combiner, ierr)
  call check(combiner == MPI_COMBINER_F90_REAL .and. integers == 2, 'the envelope of a real by precision')
  call MPI_Type_get_contents(t, 2, 0, 0, values, nothing, none, ierr)
  call check(all(values == [12, 100]), 'the contents of a real by precision')
  call MPI_Type_create_f90_complex(12, MPI_UNDEFINED, t, ierr)
  call sized(t, storage_size(z) / 8, 'a complex of 12 digits')
  call MPI_Type_create_f90_integer(15, t, ierr)
  call sized(t, storage_size(w) / 8, 'an integer of 15 digits')
  w = 10_wide**14
  call MPI_Allreduce(w, wsum, 1, t, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(wsum == ranks * 10_wide**14, 'a sum of integers by range')
  call MPI_Type_create_f90_real(4000, MPI_UNDEFINED, t, ierr)
  call check(ierr /= MPI_SUCCESS, 'a real of 4000 digits')
  call MPI_Type_create_f90_integer(400, t, ierr)
  call check(ierr /= MPI_SUCCESS, 'an integer of 400 digits')
  call MPI_Type_free(again, ierr)
  call check(ierr /= MPI_SUCCESS, 'a type by precision was freed')
  call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, t, ierr)
  call sized(t, 8, 'MPI_Type_match_size')
  call MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 5, t, ierr)
  call check(ierr /= MPI_SUCCESS, 'an integer of 5 bytes')
#if !defined(KW_MPIF)
  call MPI_Sizeof(i16, size, ierr)
  call same(size, 2, 'MPI_Sizeof of a short integer')
  call MPI_Sizeof(z, size, ierr)
  call same(size, storage_size(z) / 8, 'MPI_Sizeof of a complex')
  call MPI_Sizeof(c32s, size, ierr)
  call same(size, 8, 'MPI_Sizeof of an array is that of its elements')
#endif
contains
  subroutine sized(t, wanted, what)
    HANDLE(MPI_Datatype), intent(in) :: t
    integer, intent(in) :: wanted
    character(len=*), intent(in) :: what
    integer :: size, ierr
    call MPI_Type_size(t, size, ierr)
    call same(size, wanted, 'the size of '//what)
  end subroutine
end subroutine
