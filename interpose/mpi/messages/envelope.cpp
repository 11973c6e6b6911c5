#include "interpose/mpi/messages/envelope.h"

#include <cstring>
#include <limits>
#include <type_traits>

namespace hpe::interpose::mpi {

static_assert(std::is_trivially_copyable_v<envelope> && sizeof(envelope) <= short_envelope_bytes);

MPI_Count bytes_of(int count, MPI_Datatype type) {
  if (count <= 0 || is_null(type, handles::get().datatype_null)) return 0;
  MPI_Count size = 0;
  HPE_REAL(Type_size_x)(type, &size);
  MPI_Count bytes = 0;
  return __builtin_mul_overflow(size, count, &bytes) ? std::numeric_limits<MPI_Count>::max() : bytes;
}

// Each thread keeps the memory of its last envelope for the next call, because an allocation takes a large part of the
// time of a short receive.
std::shared_ptr<std::byte> envelope::landing() {
  static thread_local std::unique_ptr<std::byte[]> spare;
  std::unique_ptr<std::byte[]> memory = std::move(spare);
  if (memory == nullptr) memory.reset(new std::byte[envelope_bytes]);
  return {memory.release(), [](std::byte* p) { spare.reset(p); }};
}

bool envelope::fits(int count, MPI_Datatype type) {
  return bytes_of(count, type) >= static_cast<MPI_Count>(envelope_bytes);
}

void envelope::pack(wire& into, std::size_t length) const {
  std::memcpy(into.data(), this, sizeof *this);
  std::memset(into.data() + sizeof *this, 0, length - sizeof *this);
}

std::optional<envelope> envelope::recognise(const std::byte* received, std::size_t bytes) {
  if (!is_length(bytes)) return std::nullopt;
  envelope result;
  std::memcpy(&result, received, sizeof result);
  const job* const running = job::current();
  if (running == nullptr || result.job_id != running->id) return std::nullopt;
  return result;
}

std::optional<envelope> envelope::recognise(const void* place, const layout& which, std::size_t bytes) {
  if (!is_length(bytes)) return std::nullopt;
  wire received;
  std::byte* to = received.data();
  which.visit(bytes, [&](stretch s) {
    std::memcpy(to, static_cast<const std::byte*>(place) + s.offset, s.bytes);
    to += s.bytes;
  });
  return recognise(received.data(), bytes);
}

}  // namespace hpe::interpose::mpi
