#include "interpose/mpi/messages/envelope.h"

#include <cstring>
#include <type_traits>

namespace hpe::interpose::mpi {

static_assert(std::is_trivially_copyable_v<envelope> && sizeof(envelope) <= envelope_bytes);

void envelope::pack(wire& into) const { std::memcpy(into.data(), this, sizeof *this); }

std::optional<envelope> envelope::recognise(const wire& received) {
  envelope result;
  std::memcpy(&result, received.data(), sizeof result);
  const job* const running = job::current();
  if (running == nullptr || result.job_id != running->id) return std::nullopt;
  return result;
}

std::optional<envelope> envelope::recognise(const void* place, const layout& which) {
  wire received;
  std::byte* to = received.data();
  which.visit(envelope_bytes, [&](stretch s) {
    std::memcpy(to, static_cast<const std::byte*>(place) + s.offset, s.bytes);
    to += s.bytes;
  });
  return recognise(received);
}

}  // namespace hpe::interpose::mpi
