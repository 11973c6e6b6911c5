#define FIRST_STATUS :, 1
  program fortran_header
    use, intrinsic :: iso_c_binding
    implicit none
    include 'mpif.h'
    include 'fortran_interface.inc'
    integer :: requests(2), statuses(MPI_STATUS_SIZE, 2)
#include "fortran_calls.inc"
  end program
