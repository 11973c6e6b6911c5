// Calls that can pass hpe memory to the operating system although no other interposed function sees the buffer.
// syscall() is forwarded to the interposed function of libc for the same system call, if there is one. The other calls
// in this file use their buffers after they return, or work on pages instead of data. With hpe memory, they fail with
// EFAULT, and hpe logs the reason. docs/files.md lists the calls that hpe cannot intercept.

#include <aio.h>
#include <mqueue.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include "interpose/io/next.h"
#include "interpose/io/staged_buffers.h"

// unistd.h declares syscall with an ellipsis. This signature has the same calling convention, so the compiler passes
// most calls on by one jump.
extern "C" long hpe_syscall(long number, long a, long b, long c, long d, long e, long f) asm("syscall");

namespace {

using namespace hpe::interpose;  // NOLINT(google-build-using-namespace): this file is part of that namespace

template <class T>
T* pointer(long value) noexcept {
  return reinterpret_cast<T*>(value);
}

bool any_of_hpe(long a, long b, long c, long d, long e, long f) noexcept {
  for (const long value : {a, b, c, d, e, f})
    if (hpe::core::host_access::of(pointer<void>(value)) != nullptr) return true;
  return false;
}

// The argument of syscall() that points to the buffer, for system calls that have a function in libc.
enum class buffer : std::uint8_t { none, first, second, in_vectors };

buffer buffer_of(long number) noexcept {
  switch (number) {
    case SYS_getrandom: return buffer::first;
    case SYS_read:
    case SYS_write:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_sendto:
    case SYS_recvfrom:
    case SYS_mq_timedsend:
    case SYS_mq_timedreceive:
    case SYS_msgsnd:
    case SYS_msgrcv: return buffer::second;
    case SYS_readv:
    case SYS_writev:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_preadv2:
    case SYS_pwritev2:
    case SYS_sendmsg:
    case SYS_recvmsg:
    case SYS_sendmmsg:
    case SYS_recvmmsg:
    case SYS_process_vm_readv:
    case SYS_process_vm_writev: return buffer::in_vectors;
    default: return buffer::none;
  }
}

// Linux expects the file offset of preadv and pwritev in two arguments; the second argument is 0 on 64-bit machines.
long through_libc(long number, long a, long b, long c, long d, long e, long f) {
  const auto file = static_cast<int>(a);
  const auto n = static_cast<std::size_t>(c);
  switch (number) {
    case SYS_read: return ::read(file, pointer<void>(b), n);
    case SYS_write: return ::write(file, pointer<const void>(b), n);
    case SYS_pread64: return ::pread(file, pointer<void>(b), n, d);
    case SYS_pwrite64: return ::pwrite(file, pointer<const void>(b), n, d);
    case SYS_readv: return ::readv(file, pointer<const iovec>(b), static_cast<int>(c));
    case SYS_writev: return ::writev(file, pointer<const iovec>(b), static_cast<int>(c));
    case SYS_preadv: return ::preadv(file, pointer<const iovec>(b), static_cast<int>(c), d);
    case SYS_pwritev: return ::pwritev(file, pointer<const iovec>(b), static_cast<int>(c), d);
    case SYS_preadv2: return ::preadv2(file, pointer<const iovec>(b), static_cast<int>(c), d, static_cast<int>(f));
    case SYS_pwritev2: return ::pwritev2(file, pointer<const iovec>(b), static_cast<int>(c), d, static_cast<int>(f));
    case SYS_sendto:
      return ::sendto(file, pointer<const void>(b), n, static_cast<int>(d), pointer<const sockaddr>(e),
                      static_cast<socklen_t>(f));
    case SYS_recvfrom:
      return ::recvfrom(file, pointer<void>(b), n, static_cast<int>(d), pointer<sockaddr>(e), pointer<socklen_t>(f));
    case SYS_sendmsg: return ::sendmsg(file, pointer<const msghdr>(b), static_cast<int>(c));
    case SYS_recvmsg: return ::recvmsg(file, pointer<msghdr>(b), static_cast<int>(c));
    case SYS_sendmmsg: return ::sendmmsg(file, pointer<mmsghdr>(b), static_cast<unsigned>(c), static_cast<int>(d));
    case SYS_recvmmsg:
      return ::recvmmsg(file, pointer<mmsghdr>(b), static_cast<unsigned>(c), static_cast<int>(d), pointer<timespec>(e));
    // libc's mq_timedsend and mq_timedreceive do not accept a null pointer as the timeout.
    case SYS_mq_timedsend:
      if (e == 0) return ::mq_send(file, pointer<const char>(b), n, static_cast<unsigned>(d));
      return ::mq_timedsend(file, pointer<const char>(b), n, static_cast<unsigned>(d), pointer<const timespec>(e));
    case SYS_mq_timedreceive:
      if (e == 0) return ::mq_receive(file, pointer<char>(b), n, pointer<unsigned>(d));
      return ::mq_timedreceive(file, pointer<char>(b), n, pointer<unsigned>(d), pointer<const timespec>(e));
    case SYS_msgsnd: return ::msgsnd(file, pointer<const void>(b), n, static_cast<int>(d));
    case SYS_msgrcv: return ::msgrcv(file, pointer<void>(b), n, d, static_cast<int>(e));
    case SYS_process_vm_readv:
      return ::process_vm_readv(file, pointer<const iovec>(b), n, pointer<const iovec>(d),
                                static_cast<unsigned long>(e), static_cast<unsigned long>(f));
    case SYS_process_vm_writev:
      return ::process_vm_writev(file, pointer<const iovec>(b), n, pointer<const iovec>(d),
                                 static_cast<unsigned long>(e), static_cast<unsigned long>(f));
    case SYS_getrandom: return ::getrandom(pointer<void>(a), static_cast<std::size_t>(b), static_cast<unsigned>(c));
    default: return next::syscall(number, a, b, c, d, e, f);
  }
}

long watched_call(long number, long a, long b, long c, long d, long e, long f) {
  const long result = next::syscall(number, a, b, c, d, e, f);
  if (result == -1)
    for (const long value : {a, b, c, d, e, f}) explain("syscall", pointer<void>(value), 1);
  return result;
}

// For system calls that have no function in libc, hpe only checks whether an argument is an address of hpe memory. To
// find device memory of the CUDA driver, hpe would have to call the driver for each argument. But the driver itself
// uses syscall(), even while it holds its locks (UCX replaces malloc's mmap by syscall()).
[[gnu::noinline]] long look_closer(long number, long a, long b, long c, long d, long e, long f) {
  switch (buffer_of(number)) {
    case buffer::first:
      if (!ordinary(pointer<void>(a))) return through_libc(number, a, b, c, d, e, f);
      break;
    case buffer::second:
      if (!ordinary(pointer<void>(b))) return through_libc(number, a, b, c, d, e, f);
      break;
    case buffer::in_vectors: return through_libc(number, a, b, c, d, e, f);
    case buffer::none:
      if (hpe::core::host_access::in_use() && any_of_hpe(a, b, c, d, e, f))
        return watched_call(number, a, b, c, d, e, f);
      break;
  }
  return next::syscall(number, a, b, c, d, e, f);
}

// Logs a failure of the request. Runs after the call: libc itself has then read the request, so it can be read safely.
int watched(int result, const char* call, const aiocb* request) noexcept {
  if (request != nullptr && !ordinary(const_cast<const void*>(request->aio_buf))) {
    const int before = errno;
    errno = EFAULT;  // the status of the request will be EFAULT
    explain(call, const_cast<const void*>(request->aio_buf), request->aio_nbytes);
    errno = before;
  }
  return result;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) long hpe_syscall(long number, long a, long b, long c, long d, long e,
                                                                   long f) {
  if (!buffer_access::all_ordinary()) return look_closer(number, a, b, c, d, e, f);
  return next::syscall(number, a, b, c, d, e, f);
}

HPE_INTERPOSE int aio_read(aiocb* request) noexcept { return watched(next::aio_read(request), "aio_read", request); }

HPE_INTERPOSE int aio_write(aiocb* request) noexcept { return watched(next::aio_write(request), "aio_write", request); }

HPE_INTERPOSE int aio_read64(aiocb64* request) noexcept { return ::aio_read(reinterpret_cast<aiocb*>(request)); }

HPE_INTERPOSE int aio_write64(aiocb64* request) noexcept { return ::aio_write(reinterpret_cast<aiocb*>(request)); }

HPE_INTERPOSE ssize_t vmsplice(int pipe, const iovec* vector, std::size_t count, unsigned flags) {
  const ssize_t result = next::vmsplice(pipe, vector, count, flags);
  if (result == -1 && !ordinary(vector, count))
    for (std::size_t i = 0; i < count; ++i) explain("vmsplice", vector[i].iov_base, vector[i].iov_len);
  return result;
}
