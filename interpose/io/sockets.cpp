// send, recv and their families. hpe makes one system call for each call of the program, because each call may transfer
// one message. hpe reduces the number of bytes only for large non-blocking sends and large receives on stream sockets
// (streams.h).

#undef _FORTIFY_SOURCE

#include <sys/socket.h>

#include "interpose/io/next.h"
#include "interpose/io/staged_call.h"
#include "interpose/io/streams.h"
#include "runtime/base/error.h"

namespace {

using namespace hpe::interpose;  // NOLINT(google-build-using-namespace): this file is part of that namespace

using bytes_of = std::size_t;

// Returns a header with which sendmsg or recvmsg transfers the buffers of a vector as one message.
msghdr message_of(const iovec* vector, int count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(vector);
  message.msg_iovlen = static_cast<bytes_of>(count);
  return message;
}

const iovec* vector_of(const msghdr* message) noexcept { return message != nullptr ? message->msg_iov : nullptr; }
bytes_of entries_of(const msghdr* message) noexcept { return message != nullptr ? message->msg_iovlen : 0; }

bool ordinary_message(const msghdr* message) noexcept {
  return buffer_access::all_ordinary() || message == nullptr || ordinary(message->msg_iov, message->msg_iovlen);
}

bool ordinary_messages(const mmsghdr* messages, unsigned count) noexcept {
  if (buffer_access::all_ordinary() || messages == nullptr) return true;
  for (unsigned i = 0; i < count; ++i)
    if (!ordinary_message(&messages[i].msg_hdr)) return false;
  return true;
}

// With MSG_ZEROCOPY, the operating system reads the buffer after the call has returned, when hpe has already released
// the staged copy.
void require_no_zerocopy(int flags) {
  HPE_REQUIRE((flags & MSG_ZEROCOPY) == 0, HPE_ERROR_INVALID_ARGUMENT,
              "hpe memory cannot be sent with MSG_ZEROCOPY; leave this flag out to send the same data");
}

bool never_blocks(int flags) noexcept { return (flags & MSG_DONTWAIT) != 0; }

bytes_of most_received(int socket, bytes_of n, int flags) noexcept {
  const bool all = (flags & (MSG_WAITALL | MSG_TRUNC)) != 0;
  return all ? n : most_of_stream(socket, n, host_use::write);
}

// The staged messages of one call.
class staged_messages {
 public:
  staged_messages(host_use use, const mmsghdr* messages, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      staging& buffers = buffers_.emplace_back(use);
      buffers.add(messages[i].msg_hdr.msg_iov, messages[i].msg_hdr.msg_iovlen);
      mmsghdr& message = messages_.emplace_back(messages[i]);
      message.msg_hdr.msg_iov = const_cast<iovec*>(buffers.list().data());
      message.msg_hdr.msg_iovlen = buffers.list().size();
    }
  }
  [[nodiscard]] mmsghdr* data() { return messages_.data(); }

  // Copies the results of the first result.count messages to the program's messages, and the received bytes to the
  // program's buffers.
  outcome finish(const char* call, outcome result, mmsghdr* messages) {
    for (ssize_t i = 0; i < result.count; ++i) {
      iovec* const vector = messages[i].msg_hdr.msg_iov;
      const bytes_of entries = messages[i].msg_hdr.msg_iovlen;
      messages[i] = messages_[static_cast<bytes_of>(i)];
      messages[i].msg_hdr.msg_iov = vector;
      messages[i].msg_hdr.msg_iovlen = entries;
      (void)buffers_[static_cast<bytes_of>(i)].finish(call, outcome(messages[i].msg_len));
    }
    if (result.count < 0) (void)buffers_.front().finish(call, result);
    return result;
  }

 private:
  std::vector<staging> buffers_;
  std::vector<mmsghdr> messages_;
};

constexpr unsigned most_messages = 1024;  // the operating system accepts no more messages in one call

}  // namespace

// ---- sending

HPE_INTERPOSE ssize_t send(int socket, const void* p, bytes_of n, int flags) {
  if (n == 0 || ordinary(p)) return passed([&] { return next::send(socket, p, n, flags); }, "send", p, n);
  return ::sendto(socket, p, n, flags, nullptr, 0);
}

HPE_INTERPOSE ssize_t __send(int socket, const void* p, bytes_of n, int flags) { return ::send(socket, p, n, flags); }

HPE_INTERPOSE ssize_t sendto(int socket, const void* p, bytes_of n, int flags, const sockaddr* to, socklen_t size) {
  if (n == 0 || ordinary(p)) return passed([&] { return next::sendto(socket, p, n, flags, to, size); }, "sendto", p, n);
  return with_buffer(
      "send", host_use::read, p, most_of_stream(socket, n, host_use::read, never_blocks(flags)),
      [&](void* q, bytes_of m) {
        require_no_zerocopy(flags);
        return next::sendto(socket, q, m, flags, to, size);
      },
      [&](const iovec* v, int count) {
        msghdr message = message_of(v, count);
        message.msg_name = const_cast<sockaddr*>(to);
        message.msg_namelen = size;
        return next::sendmsg(socket, &message, flags);
      });
}

HPE_INTERPOSE ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  if (ordinary_message(message))
    return passed_vector([&] { return next::sendmsg(socket, message, flags); }, host_use::read, vector_of(message),
                         entries_of(message));
  const auto send = [&](const iovec* v, int count) {
    require_no_zerocopy(flags);
    msghdr staged = *message;
    staged.msg_iov = const_cast<iovec*>(v);
    staged.msg_iovlen = static_cast<bytes_of>(count);
    return next::sendmsg(socket, &staged, flags);
  };
  return with_vector("sendmsg", host_use::read, message->msg_iov, message->msg_iovlen, send,
                     most_of_stream(socket, bytes_of_vector(message->msg_iov, message->msg_iovlen), host_use::read,
                                    never_blocks(flags)));
}

HPE_INTERPOSE int sendmmsg(int socket, mmsghdr* messages, unsigned count, int flags) {
  if (ordinary_messages(messages, count)) return next::sendmmsg(socket, messages, count, flags);
  return static_cast<int>(staged_call("sendmmsg", [&] {
    require_no_zerocopy(flags);
    const unsigned most = std::min(count, most_messages);
    staged_messages staged(host_use::read, messages, most);
    return staged.finish("sendmmsg", outcome(next::sendmmsg(socket, staged.data(), most, flags)), messages);
  }));
}

// ---- receiving

HPE_INTERPOSE ssize_t recv(int socket, void* p, bytes_of n, int flags) {
  if (n == 0 || ordinary(p)) return passed([&] { return next::recv(socket, p, n, flags); }, "recv", p, n);
  return ::recvfrom(socket, p, n, flags, nullptr, nullptr);
}

HPE_INTERPOSE ssize_t __recv_chk(int socket, void* p, bytes_of n, bytes_of room, int flags) {
  return n > room ? next::__recv_chk(socket, p, n, room, flags) : ::recv(socket, p, n, flags);
}

HPE_INTERPOSE ssize_t recvfrom(int socket, void* p, bytes_of n, int flags, sockaddr* from, socklen_t* size) {
  if (n == 0 || ordinary(p))
    return passed([&] { return next::recvfrom(socket, p, n, flags, from, size); }, "recvfrom", p, n);
  return with_buffer(
      "recv", host_use::write, p, most_received(socket, n, flags),
      [&](void* q, bytes_of m) { return next::recvfrom(socket, q, m, flags, from, size); },
      [&](const iovec* v, int count) {
        msghdr message = message_of(v, count);
        message.msg_name = from;
        message.msg_namelen = from != nullptr ? *size : 0;
        const ssize_t result = next::recvmsg(socket, &message, flags);
        if (result >= 0 && from != nullptr) *size = message.msg_namelen;
        return result;
      });
}

HPE_INTERPOSE ssize_t __recvfrom_chk(int socket, void* p, bytes_of n, bytes_of room, int flags, sockaddr* from,
                                     socklen_t* size) {
  return n > room ? next::__recvfrom_chk(socket, p, n, room, flags, from, size)
                  : ::recvfrom(socket, p, n, flags, from, size);
}

HPE_INTERPOSE ssize_t recvmsg(int socket, msghdr* message, int flags) {
  if (ordinary_message(message))
    return passed_vector([&] { return next::recvmsg(socket, message, flags); }, host_use::write, vector_of(message),
                         entries_of(message));
  const auto receive = [&](const iovec* v, int count) {
    msghdr staged = *message;
    staged.msg_iov = const_cast<iovec*>(v);
    staged.msg_iovlen = static_cast<bytes_of>(count);
    const ssize_t result = next::recvmsg(socket, &staged, flags);
    if (result >= 0) {
      message->msg_namelen = staged.msg_namelen;
      message->msg_controllen = staged.msg_controllen;
      message->msg_flags = staged.msg_flags;
    }
    return result;
  };
  return with_vector("recvmsg", host_use::write, message->msg_iov, message->msg_iovlen, receive,
                     most_received(socket, bytes_of_vector(message->msg_iov, message->msg_iovlen), flags));
}

HPE_INTERPOSE int recvmmsg(int socket, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  if (ordinary_messages(messages, count)) return next::recvmmsg(socket, messages, count, flags, timeout);
  return static_cast<int>(staged_call("recvmmsg", [&] {
    const unsigned most = std::min(count, most_messages);
    staged_messages staged(host_use::write, messages, most);
    return staged.finish("recvmmsg", outcome(next::recvmmsg(socket, staged.data(), most, flags, timeout)), messages);
  }));
}
