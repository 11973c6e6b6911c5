#include "interpose/cuda/spread/program_code.h"

#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/ptx/files/device_code.h"
#include "runtime/ptx/text/parser.h"

namespace hpe::cuda_hooks {

namespace {

constexpr std::uint32_t container_magic = 0xba55ed50, wrapper_magic = 0x466243b1;

/// Code in memory, whose size only its own beginning tells.
std::vector<std::string> texts_in(const void* code) {
  std::uint32_t magic = 0;
  std::memcpy(&magic, code, sizeof magic);
  if (magic == container_magic || magic == wrapper_magic) {
    constexpr std::size_t most_bytes = std::size_t{1} << 40;  // the container says its own size
    return {ptx::choose_ptx(ptx::read_fat_binary(code, most_bytes)).text};
  }
  constexpr char elf[] = {0x7f, 'E', 'L', 'F'};
  if (std::memcmp(code, elf, sizeof elf) == 0) return {};
  std::string text = static_cast<const char*>(code);
  return text.find(".version") == std::string::npos ? std::vector<std::string>{} : std::vector{std::move(text)};
}

/// The file has an own module for each element.
std::vector<std::shared_ptr<program_image>> images_in(const std::string& path) {
  std::vector<std::shared_ptr<program_image>> found;
  for (std::vector<std::string>& texts : ptx::read_device_code(path).modules)
    found.push_back(std::make_shared<program_image>(std::move(texts)));
  return found;
}

/// Runs `read`; code that it cannot read has no PTX for hpe.
template <class Read>
void tolerantly(Read read) {
  try {
    read();
  } catch (const error& e) {
    log(log_level::debug, "code of the program without PTX: {}", e.what());
  }
}

}  // namespace

bool program_image::has_kernel(const std::string& name) const {
  return std::any_of(texts_.begin(), texts_.end(), [&](const std::string& t) { return ptx::has_kernel(t, name); });
}

const spread::module_model* program_image::model() {
  if (model_ != nullptr || !failure_.empty()) return model_.get();
  if (texts_.empty()) failure_ = "its module has machine code only, and no PTX";
  if (texts_.size() > 1) failure_ = "its module is linked of several PTX texts (-rdc=true)";
  if (!failure_.empty()) return nullptr;
  try {
    model_ = std::make_unique<spread::module_model>(ptx::parse(texts_));
  } catch (const error& e) {
    failure_ = fmt::format("its PTX is not understood: {}", e.what());
  }
  return model_.get();
}

program_code& program_code::of_process() {
  static auto* const code = new program_code;
  return *code;
}

void program_code::loaded(const void* handle, const void* code) {
  if (code == nullptr) return;
  std::vector<std::string> texts;
  tolerantly([&] { texts = texts_in(code); });
  const lock_guard lock(mutex_);
  loaded_[handle] = std::make_shared<program_image>(std::move(texts));
}

void program_code::loaded_file(const void* handle, const char* path) {
  if (path == nullptr) return;
  std::vector<std::shared_ptr<program_image>> images;
  tolerantly([&] { images = images_in(path); });
  const lock_guard lock(mutex_);
  loaded_[handle] = images.size() == 1 ? images.front() : std::make_shared<program_image>(std::vector<std::string>{});
}

void program_code::unloaded(const void* handle) {
  const lock_guard lock(mutex_);
  loaded_.erase(handle);
  same_.erase(handle);
  for (auto o = origins_.begin(); o != origins_.end();) {
    const void* const kernel = o->first;
    const bool ends = o->second.from == handle;
    if (ends) std::erase_if(same_, [&](const auto& each) { return each.second == kernel; });
    o = ends ? origins_.erase(o) : std::next(o);
  }
  std::erase_if(same_, [&](const auto& each) { return each.second == handle; });
}

void program_code::is_kernel_of(const void* kernel, const void* from, const char* name) {
  if (name == nullptr) return;
  const lock_guard lock(mutex_);
  same_.erase(kernel);
  origins_[kernel] = {first_of(from), name};
}

void program_code::is_same(const void* handle, const void* as) {
  const lock_guard lock(mutex_);
  same_[handle] = first_of(as);
}

const void* program_code::first_of(const void* handle) const {
  const auto found = same_.find(handle);
  return found == same_.end() ? handle : found->second;
}

program_code::origin program_code::origin_of(const void* kernel) const {
  const lock_guard lock(mutex_);
  const auto found = origins_.find(first_of(kernel));
  return found == origins_.end() ? origin{} : found->second;
}

void program_code::read_files() {
  if (std::exchange(files_read_, true)) return;
  std::vector<std::string> paths;
  ::dl_iterate_phdr(
      [](dl_phdr_info* about, std::size_t, void* to) {
        const std::string path = about->dlpi_name;
        static_cast<std::vector<std::string>*>(to)->push_back(path.empty() ? "/proc/self/exe" : path);
        return 0;
      },
      &paths);
  for (const std::string& path : paths) {
    const ptx::mapped_file file(path);
    const ptx::elf_file elf(file.content());
    if (elf.named(ptx::fat_binaries_section).empty() && elf.named(ptx::linked_fat_binaries_section).empty()) continue;
    tolerantly([&] {
      mutex_.assert_held();
      for (auto& image : images_in(path)) of_files_.push_back(std::move(image));
    });
  }
}

std::shared_ptr<program_image> program_code::find(const origin& kernel, std::string& reason) {
  const lock_guard lock(mutex_);
  if (const auto found = loaded_.find(first_of(kernel.from)); found != loaded_.end()) return found->second;
  read_files();
  std::shared_ptr<program_image> only;
  for (const auto& image : of_files_) {
    if (!image->has_kernel(kernel.name)) continue;
    if (only != nullptr) {
      reason = "several modules of the program have a kernel of this name";
      return nullptr;
    }
    only = image;
  }
  if (only == nullptr) reason = "the program has no PTX of it";
  return only;
}

}  // namespace hpe::cuda_hooks
