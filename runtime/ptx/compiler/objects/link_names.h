#pragma once

/// Names for the addresses in native code. Object code refers by name to instructions (for the messages of traps), to
/// functions of hpe and to variables of the program. Object code cannot contain the addresses, because addresses differ
/// between processes, and another process may have compiled the code.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ptx/flow/flat_kernel.h"
#include "runtime/ptx/program/image.h"

namespace hpe::ptx {

/// A program or shared object that is loaded in this process.
struct loaded_object {
  std::string build_id;  // hexadecimal digits; empty if the object has none
  std::uint64_t base = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> segments;  // begin and end of each segment
};

/// Returns the programs and shared objects that this process has loaded.
[[nodiscard]] std::vector<loaded_object> find_loaded_objects();
/// Returns the object that contains an address; null if no object does.
[[nodiscard]] const loaded_object* object_at(const std::vector<loaded_object>& objects, const void* address);

class link_names {
 public:
  /// The symbol by which compiled code refers to the native_kernel structure of its own kernel. name_generator, not
  /// this class, provides the symbol's address.
  static constexpr std::string_view own_kernel = "own_kernel";

  /// All arguments must outlive the object.
  link_names(const image& what, const flat_kernel& kernel, const std::vector<loaded_object>& objects)
      : image_(what), kernel_(kernel), objects_(objects) {}

  /// Returns the name of a function of hpe, a function of the program, or an instruction of the kernel or of a
  /// function. Throws HPE_ERROR_INTERNAL for any other address.
  [[nodiscard]] std::string name_of(const void* address) const;
  [[nodiscard]] static std::string name_of_variable(std::uint32_t symbol);
  /// Returns the address to which a name refers in this process. Empty if `name` is not a name of this class, or if the
  /// process has not loaded the shared object to which the name refers.
  [[nodiscard]] std::optional<std::uint64_t> address_of(std::string_view name) const;

 private:
  const image& image_;
  const flat_kernel& kernel_;
  const std::vector<loaded_object>& objects_;
};

}  // namespace hpe::ptx
