#include "interpose/mpi/staged_buffer.h"

#include "runtime/base/error.h"

namespace hpe::interpose::mpi {

namespace {

// How hpe copies the contiguous runs of a buffer with gaps. In hpe memory, if the average distance of the runs is at
// least this many bytes, hpe copies each run with one command; otherwise it copies the whole range including the gaps,
// which takes less time than many commands. In memory of the CUDA driver, a kernel gathers the runs, unless most of the
// bytes in the range are data.
constexpr std::size_t far_apart = std::size_t{64} << 10;

std::vector<host_run> runs_of(const layout& which, bool driver) {
  std::vector<host_run> runs;
  which.visit(which.size(), [&](stretch s) {
    runs.push_back({static_cast<std::size_t>(s.offset - which.begin()), s.bytes});
  });
  const bool together = driver ? which.extent() <= 2 * which.size() : which.extent() / runs.size() < far_apart;
  if (together) return {{0, which.extent()}};
  return runs;
}

buffer_access access_to(const void* given, const layout& which, host_use use, bool again) {
  if (which.empty()) return {};
  const std::byte* const first = moved(given, which.begin());
  if (given == nullptr) {
    HPE_REQUIRE(!core::host_access::meets(first, which.extent()), HPE_ERROR_NOT_SUPPORTED,
                "hpe does not support MPI_BOTTOM with a datatype of absolute addresses in hpe memory ({}); pass the "
                "address of the allocation as the buffer, and displacements relative to it",
                static_cast<const void*>(first));
    return {};
  }
  if (which.size() == which.extent()) return {first, which.extent(), use, again};
  adopted_pointers* const driver = core::host_access::of(first) == nullptr ? adopted_pointers::of(given) : nullptr;
  if (driver != nullptr)
    if (const auto rows = which.rows()) return {*driver, first, use, again, rows->shape};
  if (use != host_use::read) return {first, which.extent(), use, again};
  return {first, which.extent(), use, again, runs_of(which, driver != nullptr)};
}

}  // namespace

staged_buffer::staged_buffer(const void* given, layout which, host_use use, bool again)
    : bytes_(std::move(which)),
      use_(use),
      access_(access_to(given, bytes_, use, again)),
      pointer_(access_.staged() ? moved(access_.data(), -bytes_.begin()) : const_cast<void*>(given)) {}

staged_buffer::staged_buffer(layout which)
    : bytes_(std::move(which)),
      use_(host_use::read),
      stand_in_(std::make_unique<std::byte[]>(bytes_.extent())),
      pointer_(moved(stand_in_.get(), -bytes_.begin())) {}

void staged_buffer::written(std::size_t bytes) {
  if (!access_.staged() || !is_written()) return;
  const auto rows = bytes == bytes_.size() ? bytes_.rows() : std::nullopt;
  std::vector<placed_box> boxes;
  if (rows) {
    boxes.push_back({rows->offset - bytes_.begin(), rows->shape});
  } else {
    bytes_.visit(bytes, [&](stretch s) { boxes.push_back({s.offset - bytes_.begin(), {{s.bytes}, {}}}); });
  }
  access_.written(boxes);
}

}  // namespace hpe::interpose::mpi
