// Makes Open MPI a library that transfers device memory itself. This library is loaded between hpe and Open MPI. Its
// MPI_Send and MPI_Recv copy device memory through the host, and UCX says that it accepts this memory. Two variables
// turn the answers off: HPE_TEST_AWARE_LIBRARY=0 (MPIX_Query_cuda_support), HPE_TEST_AWARE_UCX=0 (ucp_context_query).
#include <cuda.h>
#include <dlfcn.h>
#include <mpi.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

int device_buffers = 0;
CUdeviceptr device_memory = 0;
CUdeviceptr device_memory_end = 0;

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

template <class Function>
Function* of_driver(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

bool says_yes(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr || std::strcmp(text, "0") != 0;
}

CUdeviceptr address_of(const void* buffer) { return reinterpret_cast<CUdeviceptr>(buffer); }

bool is_on_device(const void* buffer) {
  const bool found = address_of(buffer) >= device_memory && address_of(buffer) < device_memory_end;
  if (found) ++device_buffers;
  return found;
}

std::size_t bytes_of(int count, MPI_Datatype type) {
  int size = 0;
  MPI_Type_size(type, &size);
  return static_cast<std::size_t>(count) * static_cast<std::size_t>(size);
}

}  // namespace

extern "C" {

/// Tells this library which memory is on a device.
void aware_of(CUdeviceptr memory, std::size_t bytes) {
  device_memory = memory;
  device_memory_end = memory + bytes;
}
/// Returns the number of buffers in device memory that this library has got.
int aware_device_buffers() { return device_buffers; }

int MPIX_Query_cuda_support() { return says_yes("HPE_TEST_AWARE_LIBRARY") ? 1 : 0; }

int PMPI_Send(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  const auto send = next<decltype(PMPI_Send)>("PMPI_Send");
  if (!is_on_device(buf)) return send(buf, count, type, dest, tag, comm);
  std::vector<std::byte> host(bytes_of(count, type));
  of_driver<decltype(cuMemcpyDtoH)>("cuMemcpyDtoH_v2")(host.data(), address_of(buf), host.size());
  return send(host.data(), count, type, dest, tag, comm);
}
int MPI_Send(const void*, int, MPI_Datatype, int, int, MPI_Comm) __attribute__((alias("PMPI_Send")));

int PMPI_Recv(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  const auto receive = next<decltype(PMPI_Recv)>("PMPI_Recv");
  if (!is_on_device(buf)) return receive(buf, count, type, source, tag, comm, status);
  std::vector<std::byte> host(bytes_of(count, type));
  const int result = receive(host.data(), count, type, source, tag, comm, status);
  of_driver<decltype(cuMemcpyHtoD)>("cuMemcpyHtoD_v2")(address_of(buf), host.data(), host.size());
  return result;
}
int MPI_Recv(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*) __attribute__((alias("PMPI_Recv")));

// The kinds of memory are the fourth member of the attributes, and CUDA's memory is the second bit.
int ucp_context_query(void* context, void* attributes) {
  void* const ucx = ::dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
  const int result = reinterpret_cast<int (*)(void*, void*)>(::dlsym(ucx, "ucp_context_query"))(context, attributes);
  auto* const kinds = static_cast<std::uint64_t*>(attributes) + 3;
  if (says_yes("HPE_TEST_AWARE_UCX")) *kinds |= 2;
  return result;
}
}
