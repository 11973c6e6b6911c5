// Message queues, random numbers, and the memory of other processes.

#undef _FORTIFY_SOURCE

#include <mqueue.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/uio.h>

#include "interpose/io/next.h"
#include "interpose/io/staged_call.h"

namespace {

using namespace hpe::interpose;  // NOLINT(google-build-using-namespace): this file is part of that namespace

using bytes_of = std::size_t;

// Calls that have no form with a vector pass this function to with_buffer() as `many`. These calls transfer a whole
// buffer or nothing, so a buffer that extends beyond its allocation is an error (EFAULT).
ssize_t bad_address(const iovec*, int) {
  errno = EFAULT;
  return -1;
}

}  // namespace

HPE_INTERPOSE int mq_timedsend(mqd_t queue, const char* p, bytes_of n, unsigned priority, const timespec* until) {
  if (n == 0 || ordinary(p))
    return static_cast<int>(
        passed([&] { return next::mq_timedsend(queue, p, n, priority, until); }, "mq_timedsend", p, n));
  return static_cast<int>(with_buffer(
      "mq_timedsend", host_use::read, p, n,
      [&](void* q, bytes_of m) { return next::mq_timedsend(queue, static_cast<const char*>(q), m, priority, until); },
      bad_address));
}

HPE_INTERPOSE int mq_send(mqd_t queue, const char* p, bytes_of n, unsigned priority) {
  if (n == 0 || ordinary(p))
    return static_cast<int>(passed([&] { return next::mq_send(queue, p, n, priority); }, "mq_send", p, n));
  return static_cast<int>(with_buffer(
      "mq_send", host_use::read, p, n,
      [&](void* q, bytes_of m) { return next::mq_send(queue, static_cast<const char*>(q), m, priority); },
      bad_address));
}

HPE_INTERPOSE ssize_t mq_timedreceive(mqd_t queue, char* p, bytes_of n, unsigned* priority, const timespec* until) {
  if (n == 0 || ordinary(p))
    return passed([&] { return next::mq_timedreceive(queue, p, n, priority, until); }, "mq_timedreceive", p, n);
  return with_buffer(
      "mq_timedreceive", host_use::write, p, n,
      [&](void* q, bytes_of m) { return next::mq_timedreceive(queue, static_cast<char*>(q), m, priority, until); },
      bad_address);
}

HPE_INTERPOSE ssize_t mq_receive(mqd_t queue, char* p, bytes_of n, unsigned* priority) {
  if (n == 0 || ordinary(p)) return passed([&] { return next::mq_receive(queue, p, n, priority); }, "mq_receive", p, n);
  return with_buffer(
      "mq_receive", host_use::write, p, n,
      [&](void* q, bytes_of m) { return next::mq_receive(queue, static_cast<char*>(q), m, priority); }, bad_address);
}

// The size argument of msgsnd and msgrcv does not include the message type, which precedes the text in the buffer.

HPE_INTERPOSE int msgsnd(int queue, const void* p, bytes_of n, int flags) {
  if (ordinary(p)) return static_cast<int>(passed([&] { return next::msgsnd(queue, p, n, flags); }, "msgsnd", p, n));
  return static_cast<int>(with_buffer(
      "msgsnd", host_use::read, p, n + sizeof(long),
      [&](void* q, bytes_of m) { return next::msgsnd(queue, q, m - sizeof(long), flags); }, bad_address));
}

HPE_INTERPOSE ssize_t msgrcv(int queue, void* p, bytes_of n, long type, int flags) {
  if (ordinary(p)) return passed([&] { return next::msgrcv(queue, p, n, type, flags); }, "msgrcv", p, n);
  const ssize_t result = with_buffer(
      "msgrcv", host_use::write, p, n + sizeof(long),
      [&](void* q, bytes_of m) {
        const ssize_t got = next::msgrcv(queue, q, m - sizeof(long), type, flags);
        return got < 0 ? got : got + static_cast<ssize_t>(sizeof(long));
      },
      bad_address);
  return result < 0 ? result : result - static_cast<ssize_t>(sizeof(long));
}

HPE_INTERPOSE ssize_t getrandom(void* p, bytes_of n, unsigned flags) {
  if (n == 0 || ordinary(p)) return passed([&] { return next::getrandom(p, n, flags); }, "getrandom", p, n);
  return with_buffer(
      "getrandom", host_use::write, p, n, [&](void* q, bytes_of m) { return next::getrandom(q, m, flags); },
      [&](const iovec* v, int) { return next::getrandom(v->iov_base, v->iov_len, flags); });
}

HPE_INTERPOSE int getentropy(void* p, bytes_of n) {
  if (n == 0 || ordinary(p))
    return static_cast<int>(passed([&] { return next::getentropy(p, n); }, "getentropy", p, n));
  const ssize_t result = with_buffer(
      "getentropy", host_use::write, p, n,
      [&](void* q, bytes_of m) { return next::getentropy(q, m) == 0 ? static_cast<ssize_t>(m) : ssize_t{-1}; },
      bad_address);
  return result < 0 ? -1 : 0;
}

// Only the vectors of the calling process are staged; the remote vectors describe memory of another process.

HPE_INTERPOSE ssize_t process_vm_readv(pid_t process, const iovec* here, unsigned long count, const iovec* there,
                                       unsigned long there_count, unsigned long flags) {
  if (ordinary(here, count))
    return passed_vector([&] { return next::process_vm_readv(process, here, count, there, there_count, flags); },
                         host_use::write, here, count);
  return with_vector("process_vm_readv", host_use::write, here, count, [&](const iovec* v, int n) {
    return next::process_vm_readv(process, v, static_cast<unsigned long>(n), there, there_count, flags);
  });
}

HPE_INTERPOSE ssize_t process_vm_writev(pid_t process, const iovec* here, unsigned long count, const iovec* there,
                                        unsigned long there_count, unsigned long flags) {
  if (ordinary(here, count))
    return passed_vector([&] { return next::process_vm_writev(process, here, count, there, there_count, flags); },
                         host_use::read, here, count);
  return with_vector("process_vm_writev", host_use::read, here, count, [&](const iovec* v, int n) {
    return next::process_vm_writev(process, v, static_cast<unsigned long>(n), there, there_count, flags);
  });
}
