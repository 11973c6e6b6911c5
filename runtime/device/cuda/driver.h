#pragma once

/// A table of pointers to the functions of the CUDA driver that hpe calls. The constructor fills the table from
/// libcuda.so.1, with which hpe is not linked, so that programs start on machines without a driver.

#include <cuda.h>

#include <span>
#include <string>

#include "hpe/error.hpp"

namespace hpe::device::cuda {

struct driver {
#define HPE_CUDA_REQUIRED(name) decltype(&::name) name = nullptr;
#define HPE_CUDA_OPTIONAL(name) decltype(&::name) name = nullptr;
#include "runtime/device/cuda/symbols.def"
#undef HPE_CUDA_REQUIRED
#undef HPE_CUDA_OPTIONAL

  /// Loads libcuda.so.1 and initialises the driver. Throws HPE_ERROR_INITIALIZATION if the driver is missing, is too
  /// old or does not start.
  driver();

  /// Returns the name and description of an error: "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected".
  [[nodiscard]] std::string words_for(CUresult result) const;

  /// Throws the error of a failed call: HPE_ERROR_OUT_OF_MEMORY, HPE_ERROR_DEVICE_LOST or HPE_ERROR_SYSTEM. `what`
  /// names the operation.
  void check(CUresult result, const char* what) const {
    if (result != CUDA_SUCCESS) fail(result, what);
  }
  [[noreturn]] void fail(CUresult result, const char* what) const { throw failure(result, what); }
  /// Returns the error that check() throws.
  [[nodiscard]] error failure(CUresult result, const char* what) const;

  /// Loads PTX texts as one module in the calling thread's current context, and links them if there are several. Stores
  /// the module in `*made`.
  [[nodiscard]] CUresult load_texts(CUmodule* made, std::span<const std::string> texts) const;
};

/// Whether a result means that its context is permanently unusable.
[[nodiscard]] bool kills_context(CUresult result) noexcept;

/// While an object of this class exists, the calling thread may call driver functions that CUDA forbids while the
/// program captures a stream (capture mode relaxed).
class uncaptured {
 public:
  explicit uncaptured(const driver& cu);
  ~uncaptured();
  uncaptured(const uncaptured&) = delete;
  uncaptured& operator=(const uncaptured&) = delete;

 private:
  const driver& cu_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// Makes a context current in the calling thread while the object exists. Also has the effect of an object of class
/// uncaptured.
class entered {
 public:
  entered(const driver& cu, CUcontext context);
  /// For code that may make another context current: the destructor restores the context that was current before the
  /// constructor.
  enum replaced_t : std::uint8_t { what_follows_may_replace_it };
  entered(const driver& cu, CUcontext context, replaced_t);
  ~entered();
  entered(const entered&) = delete;
  entered& operator=(const entered&) = delete;

 private:
  const driver& cu_;
  const uncaptured free_;
  bool pushed_ = false;
};

}  // namespace hpe::device::cuda
