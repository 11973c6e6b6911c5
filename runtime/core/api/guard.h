#pragma once

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <string>

#include "runtime/base/error.h"
#include "runtime/core/runtime.h"
#include "runtime/trace/recorder.h"

namespace hpe::core {

/// The device that the calling thread chose with hpeSetDevice.
[[nodiscard]] int current_device() noexcept;

/// Returns `device`, or the thread's device for HPE_CURRENT_DEVICE. Throws if there is no such device.
[[nodiscard]] unsigned device_or_current(const runtime& it, int device);

/// Checks the accesses given to a function of the C interface. work: the beginning of the message if they are invalid.
/// Throws HPE_ERROR_INVALID_ARGUMENT for a null pointer and for more than HPE_MAX_ACCESSES.
[[nodiscard]] std::span<const hpeAccess> require_accesses(const std::string& work, const hpeAccess* accesses,
                                                          std::size_t count);

/// A shape as devices take it.
[[nodiscard]] device::shape blocks_of(const hpeGrid& grid);

/// Keeps the message that hpeGetLastErrorMessage gives the calling thread.
void remember_error(const char* message) noexcept;

/// While it lives, the calling thread runs a function of the program that hpe calls while it holds locks. Functions of
/// the C interface that the thread calls meanwhile would deadlock, so they fail instead.
class inside_callback {
 public:
  inside_callback() noexcept;
  ~inside_callback();
  inside_callback(const inside_callback&) = delete;
  inside_callback& operator=(const inside_callback&) = delete;
};

/// Throws HPE_ERROR_INVALID_ARGUMENT while the calling thread has an inside_callback.
void require_no_callback();

/// Runs the body of a function of the C interface and turns its exceptions into a status.
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

/// Fills a struct of the program, which may have been compiled with the header of another version of hpe: members are
/// only ever appended, so the first bytes have one meaning in both. Members that only the program knows become zero.
/// function: the name of the function of the C interface, for the message.
template <class Struct>
void give_answer(Struct* place, const Struct& answer, const char* function) {
  constexpr std::size_t largest = 4096;  // more than any version of a struct has; a larger one was never set
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
