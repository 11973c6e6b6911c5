#pragma once

/// The phases of a receive (incoming.h). Each phase is a struct with the data that exists only in this phase.
/// `successors` lists the allowed transitions.

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <variant>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/messages/envelope.h"
#include "interpose/mpi/messages/set_aside.h"

namespace hpe::interpose::mpi::receive_phase {

/// The receive has not started, or has completed.
struct ready {
  std::optional<matched> found;  ///< the message to receive, if a probe has already taken it out of MPI
};

/// MPI's own receive in a blocking call has received an envelope. The start fetches the payload.
struct has_envelope {
  envelope head;
};

/// MPI's own receive in a blocking call has received more bytes than the program's buffer holds. The start reports the
/// error.
struct has_too_much {};

/// MPI's own receive is posted, and will receive the message or an envelope.
struct posted {
  MPI_Request request{};         ///< MPI's own receive
  std::optional<matched> found;  ///< as in `ready`
};

/// MPI has received the message itself, or nothing because of an error or a cancellation. A sender that has claimed the
/// advertisement of this receive for another message may still be copying to the buffer.
struct received {
  int code = MPI_SUCCESS;
  bool cancelled = false;
};

/// The common data of the following phases, in which hpe has received the envelope of the message.
struct payload {
  envelope head;
  bool taken = false;  ///< whether this receive has taken the offer in `head`
};

/// The payload is not being fetched yet. As in `received`, a sender may still be copying another message to the buffer.
struct unsettled : payload {};

/// The sender copies the payload to the advertised buffer, without a request of the receiver.
struct copied_unasked : payload {
  std::chrono::steady_clock::time_point since;
};

/// The receiver copies the payload, or receives it in chunks.
struct fetching : payload {
  std::byte* to = nullptr;                 ///< the memory to which the payload is copied
  std::unique_ptr<std::byte[]> assembled;  ///< the contiguous payload, if the layout has gaps
  std::shared_ptr<std::byte> gathered;     ///< the contiguous payload in hpe's device memory
};

/// The receiver has asked the sender to copy the payload.
struct asked : fetching {
  adopted_pointers* devices = nullptr;  ///< the object that manages the memory `to`
  std::size_t bytes = 0;  ///< the number of bytes from the first to the last byte of the copy, including gaps
  std::chrono::steady_clock::time_point since;
};

using any =
    std::variant<ready, has_envelope, has_too_much, posted, received, unsettled, copied_unasked, fetching, asked>;

/// The position of a phase in the variant.
template <class Phase, std::size_t at = 0>
constexpr std::size_t place_of() {
  if constexpr (std::is_same_v<std::variant_alternative_t<at, any>, Phase>)
    return at;
  else
    return place_of<Phase, at + 1>();
}

using set = unsigned;  // one bit for each phase: bit n for position n in the variant
template <class... Phases>
inline constexpr set set_of = ((1U << place_of<Phases>()) | ...);

struct transitions {
  std::size_t from;
  set to;
};

/// The phases that may follow each phase.
inline constexpr std::array successors{
    transitions{place_of<ready>(), set_of<has_envelope, has_too_much, posted, unsettled>},
    transitions{place_of<has_envelope>(), set_of<unsettled, copied_unasked>},
    transitions{place_of<has_too_much>(), set_of<ready>},
    transitions{place_of<posted>(), set_of<received, unsettled, copied_unasked>},
    transitions{place_of<received>(), set_of<ready>},
    transitions{place_of<unsettled>(), set_of<ready, fetching>},       // ready: the message is too long
    transitions{place_of<copied_unasked>(), set_of<ready, fetching>},  // fetching: the sender's copy has failed
    transitions{place_of<fetching>(), set_of<ready, asked>},
    transitions{place_of<asked>(), set_of<ready, fetching>},  // fetching: the sender leaves the copy to the receiver
};

constexpr bool are_in_order() {
  for (std::size_t i = 0; i < successors.size(); ++i)
    if (successors[i].from != i) return false;
  return successors.size() == std::variant_size_v<any>;
}
static_assert(are_in_order(), "the table has one row for each phase, in the order of the variant");

constexpr bool may_follow(std::size_t from, std::size_t to) { return (successors[from].to >> to & 1U) != 0; }

}  // namespace hpe::interpose::mpi::receive_phase
