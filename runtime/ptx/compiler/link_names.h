#pragma once

/// Names of the addresses in native code. Object code refers to instructions (for the messages of traps), to functions
/// of hpe and to variables of the program by name, because their addresses differ between processes and the object code
/// may come from another one.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ptx/compiler/flat_kernel.h"
#include "runtime/ptx/program/image.h"

namespace hpe::ptx {

/// A program or shared object of this process.
struct loaded_object {
  std::string build_id;  // hexadecimal digits; empty if the linker gave it none
  std::uint64_t base = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> segments;  // begin and end
};

/// The objects that are loaded now.
[[nodiscard]] std::vector<loaded_object> find_loaded_objects();
/// The one that contains an address. Null if there is none.
[[nodiscard]] const loaded_object* object_at(const std::vector<loaded_object>& objects, const void* address);

class link_names {
 public:
  /// All arguments must outlive the object.
  link_names(const image& what, const flat_kernel& kernel, const std::vector<loaded_object>& objects)
      : image_(what), kernel_(kernel), objects_(objects) {}

  /// The name of a function of hpe, a function of the program, or an instruction of the kernel or of a function. Throws
  /// HPE_ERROR_INTERNAL for another address.
  [[nodiscard]] std::string name_of(const void* address) const;
  [[nodiscard]] static std::string name_of_variable(std::uint32_t symbol);
  /// The address in this process. None if the name is none of these, or if this process has not loaded the object that
  /// it refers to.
  [[nodiscard]] std::optional<std::uint64_t> address_of(std::string_view name) const;

 private:
  const image& image_;
  const flat_kernel& kernel_;
  const std::vector<loaded_object>& objects_;
};

}  // namespace hpe::ptx
