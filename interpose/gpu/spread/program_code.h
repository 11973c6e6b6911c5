#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/spread/model/module_model.h"

namespace hpe::cuda_hooks {

struct program_code_event;

/// The PTX of a module or library of the program. Thread-safe.
class program_image {
 public:
  /// `texts` are the PTX texts of all modules, which hpe links together; empty if the image contains only machine code.
  explicit program_image(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  [[nodiscard]] bool has_texts() const { return !texts_.empty(); }
  [[nodiscard]] bool has_kernel(const std::string& name) const;
  /// Returns the PTX, which the first call reads. If hpe cannot read it, returns null and sets failure() to the reason.
  /// Throws std::bad_alloc for lack of host memory; the next call reads the PTX again.
  [[nodiscard]] std::shared_ptr<const ptx::program> program();
  /// To be called after program().
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  void read();

  const std::vector<std::string> texts_;
  std::once_flag reading_;
  std::shared_ptr<const ptx::program> program_;
  std::string failure_;
};

/// The analysis of one kernel of an image, and PTX that contains this kernel only, patched so that it can run a part of
/// its grid. Libraries have modules with thousands of kernels, of which a program launches few. Thread-safe.
class kernel_code {
 public:
  explicit kernel_code(std::string name) : name_(std::move(name)) {}

  /// Returns the analysed and patched kernel, for which the first call takes up to seconds. If hpe cannot analyse it,
  /// returns null and sets failure() to the reason. Throws std::bad_alloc for lack of host memory; the next call
  /// repeats the analysis. `image` is the image of the kernel.
  [[nodiscard]] const spread::module_model* model(program_image& image);
  /// Whether model() returns at once.
  [[nodiscard]] bool is_analysed() const noexcept { return is_analysed_.load(std::memory_order_acquire); }
  /// Returns true for one caller, which lets a thread call model(). If model() throws, or if no thread can call it,
  /// that caller or the thread calls end_claim(), and claim_analysis() returns true once more.
  [[nodiscard]] bool claim_analysis() noexcept { return !is_claimed_.exchange(true); }
  void end_claim() noexcept { is_claimed_.store(false); }
  /// To be called after model().
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  const std::string name_;
  std::once_flag analysis_;
  std::unique_ptr<spread::module_model> model_;
  std::string failure_;
  std::atomic<bool> is_analysed_{false}, is_claimed_{false};
};

/// Records the device code of the program: the images that the program passes to the driver, the code in the program's
/// files, and the module or library from which the program obtained each kernel's handle. Thread-safe.
class program_code {
 public:
  /// Returns the only object in the process, which is never destroyed.
  [[nodiscard]] static program_code& of_process();

  /// To be called when the program has loaded code: PTX, a fat binary or its wrapper, or machine code. `handle` is the
  /// handle of the module or library. This function reads the code before it returns, because the program may free the
  /// code afterwards.
  void loaded(const void* handle, const void* code);
  void loaded_file(const void* handle, const char* path);
  void unloaded(const void* handle);
  /// To be called when the program has obtained the handle of a kernel from a module or library (is_kernel_of), or
  /// another handle for the same code: the module of a library, or the function of a kernel (is_same).
  void is_kernel_of(const void* kernel, const void* from, const char* name);
  void is_same(const void* handle, const void* as);

  /// Calls the function above that records the event.
  void record(const program_code_event& event);

  struct origin {
    const void* from = nullptr;  // the module or library
    std::string name;            // the name of the kernel; empty if hpe has not seen the handle
  };
  [[nodiscard]] origin origin_of(const void* kernel) const;
  /// Likewise, but asks the driver if hpe has not seen how the program obtained the handle, which may be a CUkernel.
  [[nodiscard]] origin origin_of(const device::cuda::driver& cu, CUfunction handle) const;

  /// Whether any code that hpe has read so far contains PTX: code that the program has loaded, or code in the program's
  /// files.
  [[nodiscard]] bool has_texts() const;
  /// Returns the image that contains a kernel of a module or library. If kernel.from is null, or hpe has not seen how
  /// that module was loaded, returns the image in the program's files that contains a kernel with this name, if exactly
  /// one image contains it. Returns null, and sets `reason`, if it finds no image.
  [[nodiscard]] std::shared_ptr<program_image> find(const origin& kernel, std::string& reason);

 private:
  /// A module or library that the program has loaded.
  struct loaded_code {
    std::shared_ptr<program_image> image;
    const void* at = nullptr;  // the address from which the program loaded the code
  };
  void read_files() HPE_REQUIRES(mutex_);
  [[nodiscard]] std::shared_ptr<program_image> linked_image_of(const void* code) HPE_REQUIRES(mutex_);
  [[nodiscard]] const void* first_of(const void* handle) const HPE_REQUIRES(mutex_);

  mutable mutex mutex_;
  std::map<const void*, loaded_code> loaded_ HPE_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<program_image>> linked_ HPE_GUARDED_BY(mutex_);  // the key is a file's path
  std::map<const void*, origin> origins_ HPE_GUARDED_BY(mutex_);
  std::map<const void*, const void*> same_ HPE_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<program_image>> of_files_ HPE_GUARDED_BY(mutex_);
  bool files_read_ HPE_GUARDED_BY(mutex_) = false;
};

}  // namespace hpe::cuda_hooks
