// The functions that return the addresses and sizes of module variables, and that copy from and to these variables.

#include <cuda_runtime_api.h>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/memory/copying.h"
#include "interpose/soft/cudart/module/module_table.h"

using namespace hpe::cudart;

namespace {

/// Returns the memory of a variable on the calling thread's current device.
memory_range locate(const void* symbol) {
  const variable found = process().modules().find_variable(symbol);
  return found.owner->locate(found.name, process().current_device());
}

/// Returns the address of a part of a variable. Throws cudaErrorInvalidValue if the part is not inside the variable.
char* part_of(const void* symbol, std::size_t bytes, std::size_t offset) {
  const memory_range whole = locate(symbol);
  require(offset <= whole.size && bytes <= whole.size - offset, cudaErrorInvalidValue);
  return static_cast<char*>(whole.address) + offset;
}

cudaMemcpy3DParms copy_to(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                          cudaMemcpyKind kind) {
  require(kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault,
          cudaErrorInvalidMemcpyDirection);
  return flat_copy(part_of(symbol, bytes, offset), from, bytes, kind);
}

cudaMemcpy3DParms copy_from(void* to, const void* symbol, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind) {
  require(kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault,
          cudaErrorInvalidMemcpyDirection);
  return flat_copy(to, part_of(symbol, bytes, offset), bytes, kind);
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaGetSymbolAddress(void** address, const void* symbol) {
  return api_call("cudaGetSymbolAddress", [&] {
    require(address != nullptr, cudaErrorInvalidValue);
    *address = locate(symbol).address;
  });
}

cudaError_t CUDARTAPI cudaGetSymbolSize(std::size_t* size, const void* symbol) {
  return api_call("cudaGetSymbolSize", [&] {
    require(size != nullptr, cudaErrorInvalidValue);
    *size = locate(symbol).size;
  });
}

cudaError_t CUDARTAPI cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                         cudaMemcpyKind kind) {
  return api_call("cudaMemcpyToSymbol", [&] { return copy_now(copy_to(symbol, from, bytes, offset, kind)); });
}

cudaError_t CUDARTAPI cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes,
                                              std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return api_call("cudaMemcpyToSymbolAsync",
                  [&] { return copy_in_stream(copy_to(symbol, from, bytes, offset, kind), stream); });
}

cudaError_t CUDARTAPI cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                           cudaMemcpyKind kind) {
  return api_call("cudaMemcpyFromSymbol", [&] { return copy_now(copy_from(to, symbol, bytes, offset, kind)); });
}

cudaError_t CUDARTAPI cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                                cudaMemcpyKind kind, cudaStream_t stream) {
  return api_call("cudaMemcpyFromSymbolAsync",
                  [&] { return copy_in_stream(copy_from(to, symbol, bytes, offset, kind), stream); });
}
}
