#define FIRST_STATUS 1
  program fortran_f08
    use, intrinsic :: iso_c_binding
    use mpi_f08
    implicit none
    include 'interface.inc'
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: statuses(2)
#include "calls.inc"
  end program
