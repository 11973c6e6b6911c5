#pragma once

#include <bit>
#include <type_traits>

namespace hpe::libcuda {

template <class T>
concept complete_object = requires {
  sizeof(T);
}
&&std::is_object_v<T>;

/// Converts an argument of a driver function to the type that a runtime function has for the same argument. Both types
/// have the same layout: handles, structures, enumerations with the same values, and addresses (CUdeviceptr or
/// pointers).
template <class From>
class same_value {
 public:
  explicit same_value(From value) : value_(value) {}

  template <class To>
  operator To() const {  // NOLINT(google-explicit-constructor): the conversion is the purpose
    if constexpr (std::is_pointer_v<From> && std::is_pointer_v<To>) {
      using from = std::remove_pointer_t<From>;
      using to = std::remove_pointer_t<To>;
      if constexpr (complete_object<from> && complete_object<to>) static_assert(sizeof(from) == sizeof(to));
      return (To)value_;  // NOLINT: the runtime's parameter may be const or not
    } else if constexpr (std::is_class_v<From>) {
      return std::bit_cast<To>(value_);
    } else if constexpr (std::is_pointer_v<To>) {
      return reinterpret_cast<To>(value_);
    } else {
      return static_cast<To>(value_);
    }
  }

 private:
  From value_;
};

template <class From>
same_value<From> same(From value) {
  return same_value<From>(value);
}

}  // namespace hpe::libcuda
