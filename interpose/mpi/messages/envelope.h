#pragma once

/// Instead of a large message, the sender first sends an envelope: a small message that describes the large one. The
/// envelope has the same communicator, tag and destination, so that MPI matches and orders it like the large message.
/// The receiver recognises an envelope by its length and by the job's number in it. The payload, which is the content
/// of the large message, is transferred after the receiver has answered (channel.h, board/offers.h).

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

#include "hpe/node.h"
#include "interpose/adopted_pointers.h"
#include "interpose/mpi/layout.h"
#include "interpose/mpi/messages/board/advertisement_board.h"
#include "interpose/mpi/messages/board/offers.h"
#include "interpose/mpi/messages/job.h"

namespace hpe::interpose::mpi {

/// The length of an envelope in bytes. Receives of short messages, for which latency matters, have buffers that are
/// smaller than an envelope, so hpe usually does not have to inspect these receives (point_to_point.h). Every transport
/// sends messages of this length eagerly. The length is a multiple of 16, so that an envelope does not end within an
/// element of a datatype.
inline constexpr std::size_t envelope_bytes = 2032;
/// The length in bytes of an envelope to a rank that inspects all its receives (offer_board::looks). Open MPI sends
/// messages of up to 256 bytes in half the time of an envelope of full length, and without a request.
inline constexpr std::size_t short_envelope_bytes = 240;

/// Returns the number of bytes of `count` elements; 0 for a null datatype.
[[nodiscard]] MPI_Count bytes_of(int count, MPI_Datatype type);

struct envelope {
  job::number job_id{};
  std::uint64_t sequence = 0;  ///< the number of the envelope among the sender's envelopes
  std::uint64_t bytes = 0;     ///< the number of bytes of the payload
  std::uint64_t chunk = 0;     ///< the number of bytes of each chunk except the last, if the payload is sent in chunks
  std::int32_t sender = 0;     ///< the sender's rank in MPI_COMM_WORLD
  advertisement_board::communicator_name communicator = 0;  ///< the sender's name of the message's communicator
  /// A payload in memory of the CUDA driver, and the sender's offer for this payload.
  struct offered_bytes {
    peer_bytes device{};
    box rows{};
    offer_board::offer offer{};
    bool awaited = false;  ///< whether a thread of the sender stays in MPI until the message has completed
  };
  /// The address of the payload for a receiver on the same machine: in memory of the driver, or in hpe memory. Empty if
  /// the receiver cannot access the payload.
  std::variant<std::monostate, offered_bytes, hpeExport> memory;

  [[nodiscard]] const offered_bytes* offered() const noexcept { return std::get_if<offered_bytes>(&memory); }
  [[nodiscard]] const hpeExport* exported() const noexcept { return std::get_if<hpeExport>(&memory); }

  using wire = std::array<std::byte, envelope_bytes>;
  /// Allocates memory for a packed envelope.
  [[nodiscard]] static std::shared_ptr<std::byte> landing();

  /// Whether a packed envelope fits into a receive buffer of `count` elements.
  [[nodiscard]] static bool fits(int count, MPI_Datatype type);

  /// Whether a message with this number of bytes may be an envelope.
  [[nodiscard]] static bool is_length(std::size_t bytes) noexcept {
    return bytes == short_envelope_bytes || bytes == envelope_bytes;
  }

  /// Copies the envelope to the beginning of `into`, and fills the rest of the first `length` bytes with zeros, which
  /// receivers ignore.
  void pack(wire& into, std::size_t length) const;
  /// Returns the envelope in a received message of `bytes` bytes; nullopt if the message is not an envelope.
  [[nodiscard]] static std::optional<envelope> recognise(const std::byte* received, std::size_t bytes);
  /// Like recognise(received, bytes), for a message that MPI has received at `place` with the layout `which`.
  [[nodiscard]] static std::optional<envelope> recognise(const void* place, const layout& which, std::size_t bytes);
};

}  // namespace hpe::interpose::mpi
