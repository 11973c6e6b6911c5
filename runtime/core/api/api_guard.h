#pragma once

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/core/runtime.h"
#include "runtime/trace/recorder.h"

namespace hpe::core {

/// Returns the calling thread's current device (hpeSetDevice).
[[nodiscard]] int current_device() noexcept;

/// Returns `device`, or the calling thread's current device for HPE_CURRENT_DEVICE. Throws HPE_ERROR_INVALID_DEVICE if
/// no device has this number.
[[nodiscard]] unsigned device_or_current(const runtime& it, int device);

/// Checks the accesses that the program passed to a function of the C interface, and returns them as a span. work: the
/// beginning of the error message. Throws HPE_ERROR_INVALID_ARGUMENT for a null pointer and for more than
/// HPE_MAX_ACCESSES accesses.
[[nodiscard]] std::span<const hpeAccess> require_accesses(std::string_view work, const hpeAccess* accesses,
                                                          std::size_t count);

/// Converts the shape of a launch from the C interface to the device layer's type.
[[nodiscard]] device::shape blocks_of(const hpeGrid& grid);

/// Stores the message that hpeGetLastErrorMessage will return to the calling thread.
void remember_error(const char* message) noexcept;

/// Marks the calling thread as running a callback of the program that hpe calls while it holds locks. While the object
/// exists, every call of the C interface by this thread fails, because it could deadlock.
class inside_callback {
 public:
  inside_callback() noexcept;
  ~inside_callback();
  inside_callback(const inside_callback&) = delete;
  inside_callback& operator=(const inside_callback&) = delete;
};

/// Throws HPE_ERROR_INVALID_ARGUMENT while the calling thread has an inside_callback.
void require_no_callback();

/// Runs the body of a function of the C interface and converts its exceptions to a status.
template <class Body>
hpeStatus guarded(Body&& body, const char* function = __builtin_FUNCTION()) noexcept {
  const trace::recorded here(trace::category::call, function);
  try {
    require_no_callback();
    body();
    return HPE_SUCCESS;
  } catch (const error& e) {
    remember_error(e.what());
    return e.status();
  } catch (const std::bad_alloc&) {
    remember_error("the host has no memory left for the runtime's own records");
    return HPE_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    remember_error(e.what());
    return HPE_ERROR_INTERNAL;
  }
}

/// Copies `answer` to a struct of the program, which may have been compiled with the header of another version of hpe.
/// Versions only append members, so the bytes that exist in both versions have the same meaning in both. Members that
/// exist only in the program's version become zero. function: the name of the function of the C interface, for error
/// messages.
template <class Struct>
void give_answer(Struct* place, const Struct& answer, const char* function) {
  // In bytes. No version has a larger struct, so a larger struct_size means that the program did not set it.
  constexpr std::size_t largest = 4096;
  const std::size_t size = place->struct_size;
  HPE_REQUIRE(size > sizeof size && size <= largest, HPE_ERROR_INVALID_ARGUMENT,
              "{} was given a struct whose struct_size is {}; set it to sizeof of the struct, here {}, before the call",
              function, size, sizeof answer);
  const std::size_t common = std::min(size, sizeof answer);
  auto* const bytes = reinterpret_cast<std::byte*>(place);
  std::memcpy(bytes, &answer, common);
  std::memset(bytes + common, 0, size - common);
  place->struct_size = size;
}

}  // namespace hpe::core
