#define FIRST_STATUS :, 1
  program fortran_header
    use, intrinsic :: iso_c_binding
    implicit none
    include 'mpif.h'
    include 'interface.inc'
    integer :: requests(2), statuses(MPI_STATUS_SIZE, 2)
#include "calls.inc"
  end program
