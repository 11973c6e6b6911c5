#include "runtime/check/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

namespace hpe::check {

namespace {

struct words {
  std::string_view name, past, present, infinitive;
};

const words& words_of(use how) noexcept {
  static constexpr words read{"read", "read", "reads", "read"}, write{"write", "wrote", "writes", "write"},
      change{"atomic", "changed atomically", "changes atomically", "change atomically"};
  switch (how) {
    case use::write: return write;
    case use::atomic: return change;
    case use::read:
    case use::strong_read: break;
  }
  return read;
}

}  // namespace

std::string_view name_of(use how) noexcept { return words_of(how).name; }
std::string_view past_of(use how) noexcept { return words_of(how).past; }
std::string_view present_of(use how) noexcept { return words_of(how).present; }
std::string_view infinitive_of(use how) noexcept { return words_of(how).infinitive; }

finding_side checked_operation::side(use how, std::uint32_t site, std::uint64_t base, std::uint64_t bytes) const {
  finding_side made{.how = std::string(name_of(how)), .what = what};
  for (const auto& [number, value] : pointers)
    if (value - base < bytes && made.argument == 0) made.argument = number;
  if (source_of && site != 0) made.source = source_of(site, how);
  made.place = place->text();
  return made;
}

std::string launch_race::key(std::uint64_t base) const {
  // "tile + 8" is a byte of the array "tile".
  const std::string_view array = std::string_view(variable).substr(0, variable.find(" + "));
  return fmt::format("{} {:x} {}", is_shared ? "shared" : "blocks", base, array);
}

finding launch_race::describe(const checked_operation& launch, std::uint64_t base, std::uint64_t bytes) const {
  finding f;
  const auto side = [&](const access& a) {
    finding_side made = launch.side(a.how, a.site, base, bytes);
    if (a.site == 0) made.source = a.source;
    return made;
  };
  f.now = side(later);
  f.earlier = side(earlier);
  const std::string_view now = present_of(later.how), before = past_of(earlier.how);
  if (is_shared) {
    f.kind = "shared-race";
    const std::string in = variable.empty() ? fmt::format("offset {}", begin) : variable;
    f.sentence = fmt::format("{} {} shared memory ({}) that another thread of the block {}, and no barrier orders them",
                             launch.what, now, in, before);
    f.missing = "__syncthreads() between the two accesses, or __syncwarp() for threads of one warp";
    return f;
  }
  f.kind = "block-race";
  f.sentence =
      fmt::format("{} {} bytes that another block of the launch {}, and nothing orders them", launch.what, now, before);
  f.missing = "atomic operations, two launches, or a barrier of the grid";
  f.address = begin;
  f.bytes = end - begin;
  return f;
}

std::vector<std::pair<int, std::uint64_t>> pointers_in(std::span<const std::uint32_t> offsets,
                                                       std::span<const std::uint32_t> sizes,
                                                       std::span<const std::byte> arguments) {
  std::vector<std::pair<int, std::uint64_t>> result;
  for (std::size_t n = 0; n < offsets.size(); ++n) {
    for (std::uint32_t at = 0; at + sizeof(std::uint64_t) <= sizes[n]; at += sizeof(std::uint64_t)) {
      std::uint64_t value = 0;
      if (offsets[n] + at + sizeof value > arguments.size()) break;
      std::memcpy(&value, arguments.data() + offsets[n] + at, sizeof value);
      result.emplace_back(static_cast<int>(n) + 1, value);
    }
  }
  return result;
}

std::string site_places::find(std::uint32_t site, use how) const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const entry& e) { return e.site == site && e.how == how; });
  return found == all_.end() ? "" : found->place;
}

bool site_places::has_writes_besides(std::uint32_t site) const {
  return std::any_of(all_.begin(), all_.end(), [&](const entry& each) {
    return (each.how == use::write || each.how == use::atomic) && each.site != site;
  });
}

std::uint64_t time_now() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::string actor::key() const {
  return fmt::format("{} {:x} {:x}", run.what->what, run.what->place->hash(), run.work->place->hash());
}

std::string actor::stream_text() const { return fmt::format("stream {}", run.work->stream); }
bool actor::is_allocation() const { return !run.what->is_kernel && run.what->what.find("lloc") != std::string::npos; }
bool actor::is_free() const { return !run.what->is_kernel && run.what->what.find("Free") != std::string::npos; }

std::string actor::missing_wait() const {
  return run.what->is_message
             ? fmt::format("MPI_Wait, or another call that completes the request of {}, between the two",
                           run.what->what)
             : fmt::format("a wait of the host for {} between the two", stream_text());
}

finding_side actor::side(use how, std::uint64_t base, std::size_t bytes) const {
  finding_side made = run.what->side(how, site, base, bytes);
  made.stream = run.work->stream;
  return made;
}

}  // namespace hpe::check
