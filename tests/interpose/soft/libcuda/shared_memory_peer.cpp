// The second process of the tests of memory that processes share. Executes orders (shared_memory.h) that it reads from
// the socket at standard input, until the socket is closed.

#include <cuda.h>
#include <unistd.h>

#include <vector>

#include "tests/interpose/soft/libcuda/shared_memory.h"

using namespace hpe::libcuda::test;

namespace {

class peer {
 public:
  CUresult obey(const order& what, int received, int& made) {
    switch (what.what) {
      case order::kind::open: return open(received);
      case order::kind::open_inherited: return open(static_cast<int>(what.value));
      case order::kind::create: return create(made);
      case order::kind::add: return add_to_memory(address_, what.value);
      case order::kind::fill: return fill(what.value);
      case order::kind::check:
        return words_in_memory(address_) == std::vector<std::uint32_t>(words_of_piece, what.value) ? CUDA_SUCCESS
                                                                                                   : CUDA_ERROR_UNKNOWN;
      case order::kind::drop: return drop();
    }
    return CUDA_ERROR_INVALID_VALUE;
  }

 private:
  CUresult open(int descriptor) {
    if (const CUresult failed = open_memory(&memory_, descriptor); failed != CUDA_SUCCESS) return failed;
    ::close(descriptor);
    return map_memory(&address_, memory_, 0);
  }

  CUresult create(int& made) {
    const CUmemAllocationProp properties = shareable(0);
    if (const CUresult failed = cuMemCreate(&memory_, piece, &properties, 0); failed != CUDA_SUCCESS) return failed;
    if (const CUresult failed = map_memory(&address_, memory_, 0); failed != CUDA_SUCCESS) return failed;
    return cuMemExportToShareableHandle(&made, memory_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  }

  CUresult fill(std::uint32_t value) {
    if (const CUresult failed = cuMemsetD32(address_, value, words_of_piece); failed != CUDA_SUCCESS) return failed;
    return cuCtxSynchronize();
  }

  CUresult drop() {
    if (const CUresult failed = unmap_memory(address_); failed != CUDA_SUCCESS) return failed;
    return cuMemRelease(memory_);
  }

  CUmemGenericAllocationHandle memory_ = 0;
  CUdeviceptr address_ = 0;
};

}  // namespace

int main() {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS)
    return 1;
  peer here;
  order what{};
  for (int received = -1; receive(STDIN_FILENO, what, received);) {
    int made = -1;
    const CUresult result = here.obey(what, received, made);
    if (!send(STDIN_FILENO, answer{result}, made)) return 1;
    if (made >= 0) ::close(made);
  }
  return 0;
}
