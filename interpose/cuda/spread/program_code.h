#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/spread/module_model.h"

namespace hpe::cuda_hooks {

/// The PTX of a module or library of the program, analysed and patched at the first use.
class program_image {
 public:
  /// One text for each module that is to be linked with the others; none if there is machine code only.
  explicit program_image(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  [[nodiscard]] bool has_kernel(const std::string& name) const;
  /// Null, and a reason, if there is nothing that hpe can analyse.
  [[nodiscard]] const spread::module_model* model();
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  std::vector<std::string> texts_;
  std::unique_ptr<spread::module_model> model_;
  std::string failure_;
};

/// The code of the process's program: what it gives to the driver, what its files contain, and which kernel a handle
/// names. Thread-safe; images are not.
class program_code {
 public:
  /// Never destroyed.
  [[nodiscard]] static program_code& of_process();

  /// The program has loaded code: PTX, a fat binary or the wrapper of one, or machine code. `handle` is that of a
  /// module or a library. Reads the code at once, because the program may free it.
  void loaded(const void* handle, const void* code);
  void loaded_file(const void* handle, const char* path);
  void unloaded(const void* handle);
  /// The program got the handle of a kernel from a module or library; or a handle for the same code as another one: the
  /// module of a library, the function of a kernel.
  void is_kernel_of(const void* kernel, const void* from, const char* name);
  void is_same(const void* handle, const void* as);

  struct origin {
    const void* from = nullptr;  // a module or library
    std::string name;            // of a kernel; empty if the handle was not seen
  };
  [[nodiscard]] origin origin_of(const void* kernel) const;

  /// The image that a kernel of a module or library comes from; for code that was not seen (null included) the only
  /// image in the program's files that has a kernel of this name. Null, and the reason, if there is none.
  [[nodiscard]] std::shared_ptr<program_image> find(const origin& kernel, std::string& reason);

 private:
  void read_files() HPE_REQUIRES(mutex_);
  [[nodiscard]] const void* first_of(const void* handle) const HPE_REQUIRES(mutex_);

  mutable mutex mutex_;
  std::map<const void*, std::shared_ptr<program_image>> loaded_ HPE_GUARDED_BY(mutex_);
  std::map<const void*, origin> origins_ HPE_GUARDED_BY(mutex_);
  std::map<const void*, const void*> same_ HPE_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<program_image>> of_files_ HPE_GUARDED_BY(mutex_);
  bool files_read_ HPE_GUARDED_BY(mutex_) = false;
};

}  // namespace hpe::cuda_hooks
