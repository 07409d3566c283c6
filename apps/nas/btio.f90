! btio: bt, whose solution is written to one file after every fifth iteration, and read again at the
! end.
!
!   make apps && dist/bin/mpiexec -n 4 build/apps/btio W full /tmp/btio
!
! "NAS Parallel Benchmarks I/O Version 2.4" (NASA Ames, NAS-03-002). A record of the file is the
! whole cube, u(5, n, n, n) in Fortran's order, as 8-byte numbers of the machine; records follow each
! other. Each rank has q cells of the cube (module cells), so that the lines of a record come from
! different ranks in turn. Variants:
!
!   full    one collective call a record: the file type is the rank's cells in the cube, the datatype
!           in memory the cells inside their halos
!   simple  one independent call for each line of a cell, at an explicit offset
!
! The time includes opening, writing and closing the file. Then each record is read in the same way,
! and what is verified are the means over all records of the errors. The file is removed.
module records
  use mpi_f08
  use nas
  use flow, only: n, iterations
  use cells
  implicit none
  private
  public :: open_records, write_record, read_errors

  integer, parameter :: interval = 5                      ! iterations a record
  logical :: collective
  character(:), allocatable :: path
  type(MPI_File) :: file
  type(MPI_Datatype) :: place, inside                     ! the cells in the file and in memory
  real(dp) :: seconds = 0                                 ! of this rank, for files

contains

  ! Names the file and how it is written.
  subroutine open_records(file_name, variant)
    character(*), intent(in) :: file_name, variant
    path = file_name
    collective = variant == "full"
    call MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL)
  end subroutine

  ! Opens the file, which is empty then if it is to be written.
  subroutine open_file(mode)
    integer, intent(in) :: mode
    call MPI_File_open(square, path, mode, MPI_INFO_NULL, file)
    if (mode /= MPI_MODE_RDONLY) call MPI_File_set_size(file, 0_MPI_OFFSET_KIND)
    if (collective) then
      call make_types()
      call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_DOUBLE_PRECISION, place, "native", MPI_INFO_NULL)
      call MPI_Type_free(place)
    else
      call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, "native", &
        MPI_INFO_NULL)
    end if
  end subroutine

  ! The rank's cells, in the file and in memory. Their order is that of the layers along z, so that
  ! displacements in the file rise.
  subroutine make_types()
    type(MPI_Datatype) :: in_file(q), in_memory(q)
    integer(MPI_ADDRESS_KIND) :: address(q), start_of_file(q)
    integer :: c
    start_of_file = 0
    do c = 0, q - 1
      associate (o => own(c))
        call MPI_Type_create_subarray(4, [5, n, n, n], [5, o%m], [0, o%before], MPI_ORDER_FORTRAN, &
          MPI_DOUBLE_PRECISION, in_file(c + 1))
        call MPI_Type_create_subarray(4, [5, o%m + 4], [5, o%m], [0, 2, 2, 2], MPI_ORDER_FORTRAN, &
          MPI_DOUBLE_PRECISION, in_memory(c + 1))
        call MPI_Get_address(o%u, address(c + 1))
      end associate
    end do
    call MPI_Type_create_struct(q, [(1, c=1, q)], start_of_file, in_file, place)
    call MPI_Type_create_struct(q, [(1, c=1, q)], address, in_memory, inside)
    call MPI_Type_commit(place)
    call MPI_Type_commit(inside)
    do c = 1, q
      call MPI_Type_free(in_file(c))
      call MPI_Type_free(in_memory(c))
    end do
  end subroutine

  subroutine close_file()
    call MPI_File_close(file)
    if (collective) call MPI_Type_free(inside)
  end subroutine

  ! Writes a record, if it is time for one.
  subroutine write_record(iteration)
    integer, intent(in) :: iteration
    real(dp) :: begin
    if (mod(iteration, interval) /= 0) return
    begin = MPI_Wtime()
    if (iteration == interval) call open_file(MPI_MODE_CREATE + MPI_MODE_WRONLY)
    if (collective) then
      call MPI_File_write_all(file, MPI_BOTTOM, 1, inside, MPI_STATUS_IGNORE)
    else
      call each_line(iteration / interval, write=.true.)
    end if
    if (iteration + interval > iterations) call close_file()
    seconds = seconds + MPI_Wtime() - begin
  end subroutine

  ! Writes or reads a record, counted from 1, line by line.
  subroutine each_line(record, write)
    integer, intent(in) :: record
    logical, intent(in) :: write
    integer(MPI_OFFSET_KIND) :: at
    integer :: c, j, k, many
    do c = 0, q - 1
      associate (o => own(c))
        many = 5 * o%m(1)
        do k = 1, o%m(3)
          do j = 1, o%m(2)
            at = ((record - 1_MPI_OFFSET_KIND) * n + o%before(3) + k - 1) * n + o%before(2) + j - 1
            at = 5 * (at * n + o%before(1))
            if (write) then
              call MPI_File_write_at(file, at, o%u(:, 1:o%m(1), j, k), many, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE)
            else
              call MPI_File_read_at(file, at, o%u(:, 1:o%m(1), j, k), many, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE)
            end if
          end do
        end do
      end associate
    end do
  end subroutine

  ! The means over all records of the errors; removes the file.
  function read_errors() result(error)
    real(dp) :: error(5)
    integer :: record, records
    records = iterations / interval
    call report(records)
    call open_file(MPI_MODE_RDONLY)
    error = 0
    do record = 1, records
      call forget()
      if (collective) then
        call MPI_File_read_all(file, MPI_BOTTOM, 1, inside, MPI_STATUS_IGNORE)
      else
        call each_line(record, write=.false.)
      end if
      error = error + norm_of_error()
    end do
    error = error / records
    call close_file()
    if (rank == 0) call MPI_File_delete(path, MPI_INFO_NULL)
  end function

  ! Overwrites the solution, so that data that are not read cannot be taken for it.
  subroutine forget()
    integer :: c
    do c = 0, q - 1
      own(c)%u = huge(1._dp)
    end do
  end subroutine

  subroutine report(records)
    integer, intent(in) :: records
    real(dp) :: slowest, megabytes
    call MPI_Reduce(seconds, slowest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, square)
    megabytes = 40e-6_dp * records * real(n, dp)**3
    if (rank == 0) print '("file   ", f14.2, " MB in", f14.6, " s of the slowest rank")', megabytes, slowest
  end subroutine
end module

program btio
  use nas
  use flow, only: expect_errors
  use cells
  use bt_lines
  use records
  implicit none
  character(2) :: class
  character(8) :: variant
  character(4096) :: file

  class = start("btio", ["S", "W", "A"], more=["full or simple", "the file      "])
  call get_command_argument(2, variant)
  call get_command_argument(3, file)
  if (variant /= "full" .and. variant /= "simple") call give_up("btio takes full or simple as its second argument")
  call set_bt_problem(class)
  select case (class)
  case ("W")
    call expect_errors([0.6729594398612e+02_dp, 0.5264523081690e+01_dp, 0.1677107142637e+02_dp, &
      0.1508721463436e+02_dp, 0.1477018363393e+03_dp])
  case ("A")
    call expect_errors([0.6482218724961e+02_dp, 0.5066461714527e+01_dp, 0.1613931961359e+02_dp, &
      0.1452010201481e+02_dp, 0.1420099377681e+03_dp])
  case default
    call expect_errors([0.1149036328945e+02_dp, 0.9156788904727e+00_dp, 0.2857899428614e+01_dp, &
      0.2598273346734e+01_dp, 0.2652795397547e+02_dp])
  end select
  call open_records(trim(file), trim(variant))
  call solve_in_sweeps("btio", "BT-IO "//trim(variant)//" class "//trim(class), counts, 25, forward, 30, backward, 5, &
    write_record, read_errors)
end program
