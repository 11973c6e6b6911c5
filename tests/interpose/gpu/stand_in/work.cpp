// The driver functions (entries) that queue work, and the driver function that looks up driver functions.
#include <cstring>

#include "tests/interpose/gpu/stand_in/machine.h"

using namespace stand_in;  // NOLINT(google-build-using-namespace): this file is part of that namespace

STAND_IN CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return COUNT(), copy(to, from, bytes, nullptr, !is_device(to, 1) || !is_device(from, 1));
}
STAND_IN CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream in) {
  COUNT();
  REFUSE();
  return copy(to, from, bytes, in, false);
}
STAND_IN CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes) {
  return COUNT(), copy(to, number_of(from), bytes, nullptr, true);
}
STAND_IN CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream in) {
  return COUNT(), copy(to, number_of(from), bytes, in, false);
}
STAND_IN CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) {
  return COUNT(), copy(number_of(to), from, bytes, nullptr, true);
}
STAND_IN CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream in) {
  return COUNT(), copy(number_of(to), from, bytes, in, false);
}
STAND_IN CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return COUNT(), copy(to, from, bytes, nullptr, false);
}
STAND_IN CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream in) {
  return COUNT(), copy(to, from, bytes, in, false);
}
STAND_IN CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, std::size_t bytes) {
  COUNT();
  for (int d = 0; d < device_count; ++d) wait_for(*primary(d));
  return copy(to, from, bytes, nullptr, true);
}
STAND_IN CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, std::size_t bytes,
                                    CUstream in) {
  return COUNT(), copy(to, from, bytes, in, false);
}

// ---- rows and planes ---------------------------------------------------------------------------------------------

namespace {

CUdeviceptr start_of(CUmemorytype type, const void* host, CUdeviceptr device) {
  return type == CU_MEMORYTYPE_HOST ? number_of(host) : device;
}

// Whether the bases in a description are mapped. The driver refuses a base that is not mapped, even if the copy does
// not use the byte there.
template <class Copy>
bool have_bases(const Copy& c) {
  return (c.srcMemoryType != CU_MEMORYTYPE_DEVICE || is_device(c.srcDevice, 1)) &&
         (c.dstMemoryType != CU_MEMORYTYPE_DEVICE || is_device(c.dstDevice, 1));
}

CUresult copy_rows(const CUDA_MEMCPY2D& c, CUstream in, bool wait) {
  if (!have_bases(c)) return CUDA_ERROR_INVALID_VALUE;
  if (c.srcMemoryType == CU_MEMORYTYPE_ARRAY || c.dstMemoryType == CU_MEMORYTYPE_ARRAY) return CUDA_ERROR_NOT_SUPPORTED;
  const rows from{start_of(c.srcMemoryType, c.srcHost, c.srcDevice) + c.srcY * c.srcPitch + c.srcXInBytes, c.srcPitch};
  const rows to{start_of(c.dstMemoryType, c.dstHost, c.dstDevice) + c.dstY * c.dstPitch + c.dstXInBytes, c.dstPitch};
  return copy(to, from, c.WidthInBytes, c.Height, 1, in, wait);
}

template <class Copy>  // CUDA_MEMCPY3D or CUDA_MEMCPY3D_PEER, whose members have the same names
CUresult copy_planes(const Copy& c, CUstream in, bool wait) {
  if (!have_bases(c)) return CUDA_ERROR_INVALID_VALUE;
  if (c.srcMemoryType == CU_MEMORYTYPE_ARRAY || c.dstMemoryType == CU_MEMORYTYPE_ARRAY) return CUDA_ERROR_NOT_SUPPORTED;
  const std::size_t source_slice = c.srcPitch * c.srcHeight;
  const std::size_t slice = c.dstPitch * c.dstHeight;
  const rows from{
      start_of(c.srcMemoryType, c.srcHost, c.srcDevice) + c.srcZ * source_slice + c.srcY * c.srcPitch + c.srcXInBytes,
      c.srcPitch, source_slice};
  const rows to{
      start_of(c.dstMemoryType, c.dstHost, c.dstDevice) + c.dstZ * slice + c.dstY * c.dstPitch + c.dstXInBytes,
      c.dstPitch, slice};
  return copy(to, from, c.WidthInBytes, c.Height, c.Depth, in, wait);
}

}  // namespace

STAND_IN CUresult cuMemcpy2D(const CUDA_MEMCPY2D* c) { return COUNT(), copy_rows(*c, nullptr, true); }
STAND_IN CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* c) { return COUNT(), copy_rows(*c, nullptr, true); }
STAND_IN CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* c, CUstream in) { return COUNT(), copy_rows(*c, in, false); }
STAND_IN CUresult cuMemcpy3D(const CUDA_MEMCPY3D* c) { return COUNT(), copy_planes(*c, nullptr, true); }
STAND_IN CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* c, CUstream in) { return COUNT(), copy_planes(*c, in, false); }
STAND_IN CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* c) {
  COUNT();
  for (int d = 0; d < device_count; ++d) wait_for(*primary(d));
  return copy_planes(*c, nullptr, true);
}
STAND_IN CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* c, CUstream in) {
  return COUNT(), copy_planes(*c, in, false);
}

// ---- fills, kernels and waits ------------------------------------------------------------------------------------

STAND_IN CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, std::size_t count) {
  return COUNT(), fill(to, value, 1, count, nullptr, true);
}
STAND_IN CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream in) {
  return COUNT(), fill(to, value, 1, count, in, false);
}
STAND_IN CUresult cuMemsetD32(CUdeviceptr to, unsigned value, std::size_t count) {
  return COUNT(), fill(to, value, 4, count, nullptr, true);
}
STAND_IN CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream in) {
  return COUNT(), fill(to, value, 4, count, in, false);
}
STAND_IN CUresult cuMemsetD2D32Async(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                                     std::size_t rows, CUstream in) {
  COUNT();
  for (std::size_t row = 0; row < rows; ++row)
    if (const CUresult wrong = fill(to + row * pitch, value, 4, width, in, false); wrong != CUDA_SUCCESS) return wrong;
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned, CUstream in, void** parameters, void** extra) {
  if (function == nullptr) return CUDA_SUCCESS;  // for measurements of the cost of hpe's hooks
  COUNT();
  REFUSE();
  stream* s = nullptr;
  if (const CUresult wrong = find(in, s); wrong != CUDA_SUCCESS) return wrong;
  if (is_over_limit(function)) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  for (const unsigned size : {gx, gy, gz, bx, by, bz})
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  count(s->of->device == 0 ? "launches on 0" : "launches on 1");
  if (launch_of_module(function, {{gx, gy, gz}, {bx, by, bz}}, *s, parameters, extra)) return CUDA_SUCCESS;
  const auto* const kernel = reinterpret_cast<const stand_in::kernel*>(function);
  std::vector<std::uint64_t> values(kernel->parameters);
  for (unsigned i = 0; i < kernel->parameters; ++i) std::memcpy(&values[i], parameters[i], sizeof values[i]);
  add(*s, [kernel, values] { kernel->body(values.data()); });
  return CUDA_SUCCESS;
}

// The blocks of the stand-in run one after the other, so that they cannot wait for each other: nothing runs.
STAND_IN CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                            unsigned, CUstream, void**) {
  return COUNT(), CUDA_SUCCESS;
}

// A kernel that is not in a module has only parameters of 8 bytes.
STAND_IN CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  std::optional<formal> found = formal_of_module(function, index);
  if (!found) {
    if (index >= reinterpret_cast<const stand_in::kernel*>(function)->parameters) return CUDA_ERROR_INVALID_VALUE;
    found = {index * sizeof(std::uint64_t), sizeof(std::uint64_t)};
  }
  if (found->bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  *offset = found->offset;
  if (bytes != nullptr) *bytes = found->bytes;
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  auto* const function = reinterpret_cast<CUfunction>(kernel);
  return formal_of_module(function, 0) ? cuFuncGetParamInfo(function, index, offset, bytes) : CUDA_ERROR_INVALID_VALUE;
}

// In the stand-in, the source bytes are not compressed.
STAND_IN CUresult cuMemBatchDecompressAsync(CUmemDecompressParams* what, std::size_t count, unsigned, std::size_t*,
                                            CUstream in) {
  COUNT();
  for (std::size_t i = 0; i < count; ++i)
    if (const CUresult wrong = copy(number_of(what[i].dst), number_of(what[i].src), what[i].dstNumBytes, in, false);
        wrong != CUDA_SUCCESS)
      return wrong;
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuStreamWriteValue32(CUstream in, CUdeviceptr to, cuuint32_t value, unsigned) {
  return COUNT(), fill(to, value, 4, 1, in, false);
}
STAND_IN CUresult cuMemPoolDestroy(CUmemoryPool) { return COUNT(), CUDA_SUCCESS; }
STAND_IN CUresult cuStreamWaitValue32(CUstream, CUdeviceptr, cuuint32_t, unsigned) { return COUNT(), CUDA_SUCCESS; }
STAND_IN CUresult cuStreamBatchMemOp(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned) {
  return COUNT(), CUDA_SUCCESS;
}

// ---- finding entries ---------------------------------------------------------------------------------------------

namespace {

// Finds an entry like the driver, by the requested version; returns null if no entry has this name and version.
void* find_entry(const char* name, int version) {
  struct known {
    const char* name;
    int since;
    void* entry;
  };
#define ENTRY(base, since, function) \
  { base, since, reinterpret_cast<void*>(&function) }
  static const known table[] = {
      ENTRY("cuInit", 2000, cuInit),
      ENTRY("cuMemAlloc", 3020, cuMemAlloc),
      ENTRY("cuMemFree", 3020, cuMemFree),
      ENTRY("cuMemcpy", 4000, cuMemcpy),
      ENTRY("cuMemcpyAsync", 4000, cuMemcpyAsync),
      ENTRY("cuMemcpyHtoD", 3020, cuMemcpyHtoD),
      ENTRY("cuMemcpyHtoDAsync", 3020, cuMemcpyHtoDAsync),
      ENTRY("cuMemcpyDtoH", 3020, cuMemcpyDtoH),
      ENTRY("cuMemcpyDtoHAsync", 3020, cuMemcpyDtoHAsync),
      ENTRY("cuMemcpy2D", 3020, cuMemcpy2D),
      ENTRY("cuMemcpyPeer", 4000, cuMemcpyPeer),
      ENTRY("cuLaunchKernel", 4000, cuLaunchKernel),
  };
#undef ENTRY
  for (const known& k : table)
    if (std::strcmp(k.name, name) == 0 && version >= k.since) return k.entry;
  return nullptr;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the driver's names
STAND_IN CUresult cuNewerThanHpe() { return COUNT(), static_cast<CUresult>(4242); }

#undef cuGetProcAddress
#undef cuGetProcAddress_v2
STAND_IN CUresult cuGetProcAddress(const char* name, void** result, int version, cuuint64_t flags);
STAND_IN CUresult cuGetProcAddress_v2(const char* name, void** result, int version, cuuint64_t flags,
                                      CUdriverProcAddressQueryResult* status);

STAND_IN CUresult cuGetProcAddress_v2(const char* name, void** result, int version, cuuint64_t /*flags*/,
                                      CUdriverProcAddressQueryResult* status) {
  COUNT();
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  void* found = find_entry(name, version);
  if (std::strcmp(name, "cuNewerThanHpe") == 0) found = reinterpret_cast<void*>(&cuNewerThanHpe);
  if (std::strcmp(name, "cuGetProcAddress") == 0)
    found =
        version >= 12000 ? reinterpret_cast<void*>(&cuGetProcAddress_v2) : reinterpret_cast<void*>(&cuGetProcAddress);
  if (result != nullptr) *result = found;
  if (status != nullptr)
    *status = found != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return found != nullptr || result == nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

STAND_IN CUresult cuGetProcAddress(const char* name, void** result, int version, cuuint64_t flags) {
  return COUNT(), cuGetProcAddress_v2(name, result, version, flags, nullptr);
}
// NOLINTEND(readability-identifier-naming)
