#pragma once

/// Memory of cuMemCreate that the tests and a second process (shared_memory_peer.cpp) share, and the messages between
/// them.

#include <cuda.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace hpe::libcuda::test {

inline constexpr std::size_t piece = std::size_t{2} << 20;
inline constexpr unsigned words_of_piece = piece / sizeof(std::uint32_t);

/// What the second process is to do with its memory. It answers each order with the CUresult, and `create` also with a
/// descriptor of the new memory.
struct order {
  enum class kind : std::uint32_t {
    open,            // imports the descriptor that comes with the order, and maps it
    open_inherited,  // imports the descriptor with the number `value`, and maps it
    create,          // creates memory, maps it, and exports it
    add,             // a kernel adds `value` to each word
    fill,            // cuMemsetD32 sets each word to `value`
    check,           // whether each word is `value`
    drop             // unmaps the memory and releases its handle
  };
  kind what;
  std::uint32_t value;
};

struct answer {
  CUresult result;
};

/// Sends a message with a descriptor, unless `descriptor` is negative. Returns false if the other process has ended.
template <class T>
bool send(int to, T message, int descriptor = -1) {
  iovec bytes{&message, sizeof message};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr whole{};
  whole.msg_iov = &bytes;
  whole.msg_iovlen = 1;
  if (descriptor >= 0) {
    whole.msg_control = room;
    whole.msg_controllen = sizeof room;
    cmsghdr* const header = CMSG_FIRSTHDR(&whole);
    header->cmsg_len = CMSG_LEN(sizeof(int));
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return ::sendmsg(to, &whole, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof message);
}

/// Receives a message; `descriptor` becomes -1 if none comes with it. Returns false if the other process has ended.
template <class T>
bool receive(int from, T& message, int& descriptor) {
  iovec bytes{&message, sizeof message};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr whole{};
  whole.msg_iov = &bytes;
  whole.msg_iovlen = 1;
  whole.msg_control = room;
  whole.msg_controllen = sizeof room;
  descriptor = -1;
  if (::recvmsg(from, &whole, MSG_CMSG_CLOEXEC) != static_cast<ssize_t>(sizeof message)) return false;
  if (const cmsghdr* const header = CMSG_FIRSTHDR(&whole))
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return true;
}

inline CUmemLocation on_device(int device) {
  CUmemLocation made{};
  made.type = CU_MEM_LOCATION_TYPE_DEVICE;
  made.id = device;
  return made;
}

inline CUmemAllocationProp shareable(int device) {
  CUmemAllocationProp made{};
  made.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  made.location = on_device(device);
  made.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return made;
}

inline CUresult open_memory(CUmemGenericAllocationHandle* memory, int descriptor) {
  return cuMemImportFromShareableHandle(memory, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

/// Maps memory of one piece at a new address that one device may use.
inline CUresult map_memory(CUdeviceptr* address, CUmemGenericAllocationHandle memory, int device) {
  if (const CUresult failed = cuMemAddressReserve(address, piece, 0, 0, 0); failed != CUDA_SUCCESS) return failed;
  if (const CUresult failed = cuMemMap(*address, piece, 0, memory, 0); failed != CUDA_SUCCESS) return failed;
  const CUmemAccessDesc access{on_device(device), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return cuMemSetAccess(*address, piece, &access, 1);
}

inline CUresult unmap_memory(CUdeviceptr address) {
  if (const CUresult failed = cuMemUnmap(address, piece); failed != CUDA_SUCCESS) return failed;
  return cuMemAddressFree(address, piece);
}

/// A kernel adds a value to each word of a piece, and the call waits for the kernel.
inline CUresult add_to_memory(CUdeviceptr address, std::uint32_t value) {
  // data[global index] += value
  static constexpr const char* text = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 data, .param .u32 value) {
  .reg .b32 %r<7>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [value];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r6, [%rd3];
  add.u32 %r6, %r6, %r1;
  st.global.u32 [%rd3], %r6;
  ret;
}
)";
  CUmodule module = nullptr;
  if (const CUresult failed = cuModuleLoadData(&module, text); failed != CUDA_SUCCESS) return failed;
  CUfunction add = nullptr;
  if (const CUresult failed = cuModuleGetFunction(&add, module, "add"); failed != CUDA_SUCCESS) return failed;
  void* arguments[] = {&address, &value};
  constexpr unsigned block = 256;
  const CUresult failed =
      cuLaunchKernel(add, words_of_piece / block, 1, 1, block, 1, 1, 0, nullptr, arguments, nullptr);
  if (failed != CUDA_SUCCESS) return failed;
  if (const CUresult lost = cuCtxSynchronize(); lost != CUDA_SUCCESS) return lost;
  return cuModuleUnload(module);
}

inline std::vector<std::uint32_t> words_in_memory(CUdeviceptr address) {
  std::vector<std::uint32_t> read(words_of_piece);
  if (cuMemcpyDtoH(read.data(), address, piece) != CUDA_SUCCESS) read.clear();
  return read;
}

}  // namespace hpe::libcuda::test
