#define FIRST_STATUS :, 1
  program fortran_module
    use, intrinsic :: iso_c_binding
    use mpi
    implicit none
    include 'interface.inc'
    integer :: requests(2), statuses(MPI_STATUS_SIZE, 2)
#include "calls.inc"
  end program
