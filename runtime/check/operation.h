#pragma once

/// Pieces of work of a program that is checked, and where the program queues them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/check/byte_history.h"
#include "runtime/trace/call_stack.h"

namespace hpe::check {

/// Where the program made a call, and which call. The text of the place is looked up for reports only.
struct call_place {
  std::string call;
  trace::call_stack stack;
  /// The place where the calling thread is.
  static call_place here(const char* call);
  /// Returns the place from which a short function was called that is in the stack; *this if it is not in the stack.
  [[nodiscard]] call_place outside_of(const void* function) const;
};
/// The place in the source, for reports.
[[nodiscard]] std::string text_of(const call_place& place);
/// Equal for calls from the same place.
[[nodiscard]] std::uint64_t hash_of(const call_place& place) noexcept;
/// "read", "write", "atomic"
[[nodiscard]] std::string_view name_of(use how) noexcept;

/// What some work does, the same for all runs of a node of a graph: "kernel add(float*, int)" or the name of a call.
struct checked_operation {
  std::string what;
  std::shared_ptr<const call_place> place;
  bool is_kernel = false;
  /// The values of the kernel's arguments that can be pointers, by the argument's number from 1.
  std::vector<std::pair<int, std::uint64_t>> pointers{};
  /// Returns the place in the kernel's source of a site's number; null: none is known.
  std::function<std::string(std::uint32_t site, use how)> source_of{};
  /// A call of MPI, which may access its buffers until CPU code has completed it.
  bool is_message = false;

  /// Returns the number of the first argument that points to the bytes; 0: none.
  [[nodiscard]] int argument_in(std::uint64_t base, std::uint64_t bytes) const noexcept;
};
using operation_ptr = std::shared_ptr<const checked_operation>;

/// Returns the words of a kernel's arguments that can be pointers, with the number of the argument from 1.
[[nodiscard]] std::vector<std::pair<int, std::uint64_t>> pointers_in(std::span<const std::uint32_t> offsets,
                                                                     std::span<const std::uint32_t> sizes,
                                                                     std::span<const std::byte> arguments);

/// The places at which a kernel accesses memory, by the site and the use.
class site_places {
 public:
  void add(std::uint32_t site, use how, std::string place) { all_.push_back({site, how, std::move(place)}); }
  [[nodiscard]] std::string find(std::uint32_t site, use how) const;

 private:
  struct entry {
    std::uint32_t site;
    use how;
    std::string place;
  };
  std::vector<entry> all_;
};

}  // namespace hpe::check
