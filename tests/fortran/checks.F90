! Checks for the Fortran tests. A failed one prints its sentence and lets the test go on; the program ends with status 1 then.
module checks
  use, intrinsic :: iso_fortran_env, only: error_unit, int64
  implicit none
  integer :: failures = 0, here = -1
  interface same
    module procedure same_integers, same_longs
  end interface
contains
  subroutine check(holds, sentence)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: sentence
    if (holds) return
    failures = failures + 1
    if (failures <= 20) write (error_unit, '("FAILED on rank ", i0, ": ", a)') here, trim(sentence)
  end subroutine

  subroutine same_integers(got, want, what)
    integer, intent(in) :: got, want
    character(len=*), intent(in) :: what
    call same_longs(int(got, int64), int(want, int64), what)
  end subroutine

  subroutine same_longs(got, want, what)
    integer(int64), intent(in) :: got, want
    character(len=*), intent(in) :: what
    character(len=200) :: text
    if (got == want) return
    write (text, '(a, " is ", i0, ", not ", i0)') what, got, want
    call check(.false., text)
  end subroutine
end module
