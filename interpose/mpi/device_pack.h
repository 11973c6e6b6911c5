#pragma once

/// MPI_Pack and MPI_Unpack from device memory to device memory of the CUDA driver: one kernel copies the bytes of the
/// datatype, without a copy in host memory. The functions return nullopt, without effect, if MPI itself must make the
/// call: for other memory, for memory of two devices, and for arguments that are errors.

#include "interpose/mpi/messages/point_to_point.h"

namespace hpe::interpose::mpi {

taken device_pack(const void* inbuf, int incount, MPI_Datatype type, void* outbuf, int outsize, int* position,
                  MPI_Comm comm);
taken device_unpack(const void* inbuf, int insize, int* position, void* outbuf, int outcount, MPI_Datatype type,
                    MPI_Comm comm);

}  // namespace hpe::interpose::mpi
