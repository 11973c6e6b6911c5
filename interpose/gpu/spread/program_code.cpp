#include "interpose/gpu/spread/program_code.h"

#include <link.h>

#include <algorithm>
#include <cstring>

#include "interpose/gpu/hooks/memory_kind.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/ptx/files/device_code.h"
#include "runtime/ptx/text/parser.h"

namespace hpe::cuda_hooks {

namespace {

/// Returns the PTX texts in code that begins at an address. The header of a fat binary states its size; PTX text ends
/// with a null character.
std::vector<std::string> texts_in(const void* code) {
  const auto* const text = static_cast<const char*>(code);
  if (ptx::begins_with_fat_binary(text)) return {ptx::choose_ptx(ptx::read_fat_binary_in_memory(code)).text};
  constexpr char elf[] = {0x7f, 'E', 'L', 'F'};
  if (std::strncmp(text, elf, sizeof elf) == 0 || std::strstr(text, ".version") == nullptr) return {};
  return {text};
}

/// Returns the images in a file: one image for each module of the file.
std::vector<std::shared_ptr<program_image>> images_in(const std::string& path) {
  std::vector<std::shared_ptr<program_image>> found;
  for (std::vector<std::string>& texts : ptx::read_device_code(path).modules)
    found.push_back(std::make_shared<program_image>(std::move(texts)));
  return found;
}

/// A file that is mapped into the process (the program or a shared library), and the addresses at which the file is
/// mapped.
struct mapped_object {
  std::string path;
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> segments;  // begin and end

  [[nodiscard]] bool contains(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return std::ranges::any_of(segments,
                               [&](const auto& segment) { return segment.first <= at && at < segment.second; });
  }
};

std::vector<mapped_object> mapped_objects() {
  std::vector<mapped_object> all;
  ::dl_iterate_phdr(
      [](dl_phdr_info* about, std::size_t, void* to) {
        const std::string path = about->dlpi_name;
        mapped_object& object = static_cast<std::vector<mapped_object>*>(to)->emplace_back();
        object.path = path.empty() ? "/proc/self/exe" : path;
        for (unsigned n = 0; n < about->dlpi_phnum; ++n) {
          const ElfW(Phdr)& header = about->dlpi_phdr[n];
          const std::uintptr_t begin = about->dlpi_addr + header.p_vaddr;
          if (header.p_type == PT_LOAD) object.segments.emplace_back(begin, begin + header.p_memsz);
        }
        return 0;
      },
      &all);
  return all;
}

/// Runs read(). If read() throws hpe::error, hpe treats the code as code without PTX.
template <class Read>
void tolerantly(Read read) {
  try {
    read();
  } catch (const error& e) {
    log(log_level::debug, "code of the program contains no PTX: {}", e.what());
  }
}

}  // namespace

bool program_image::has_kernel(const std::string& name) const {
  return std::any_of(texts_.begin(), texts_.end(), [&](const std::string& t) { return ptx::has_kernel(t, name); });
}

std::shared_ptr<const ptx::program> program_image::program() {
  std::call_once(reading_, [&] { read(); });
  return program_;
}

void program_image::read() {
  try {
    if (texts_.empty())
      failure_ = "its module contains machine code, but no PTX";
    else
      program_ = ptx::parse(texts_, ptx::warp_order::independent, ptx::unknown_code::left_out);
  } catch (const error& e) {
    failure_ = fmt::format("hpe cannot read its PTX: {}", e.what());
  }
}

const spread::module_model* kernel_code::model(program_image& image) {
  std::call_once(analysis_, [&] {
    try {
      if (const auto program = image.program(); program != nullptr)
        model_ =
            std::make_unique<spread::module_model>(program, [&](const std::string& name) { return name == name_; });
      else
        failure_ = image.failure();
    } catch (const error& e) {
      failure_ = fmt::format("hpe cannot analyse its PTX: {}", e.what());
    }
    is_analysed_.store(true, std::memory_order_release);
  });
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
  loaded_[handle] = {std::make_shared<program_image>(std::move(texts)), code};
}

void program_code::loaded_file(const void* handle, const char* path) {
  if (path == nullptr) return;
  std::vector<std::shared_ptr<program_image>> images;
  tolerantly([&] { images = images_in(path); });
  const lock_guard lock(mutex_);
  loaded_[handle].image =
      images.size() == 1 ? images.front() : std::make_shared<program_image>(std::vector<std::string>{});
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

void program_code::record(const program_code_event& event) {
  switch (event.what) {
    case program_code_event::step::loaded: return loaded(event.handle, event.from);
    case program_code_event::step::loaded_file: return loaded_file(event.handle, event.name);
    case program_code_event::step::unloaded: return unloaded(event.handle);
    case program_code_event::step::kernel: return is_kernel_of(event.handle, event.from, event.name);
    case program_code_event::step::same: return is_same(event.handle, event.from);
  }
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

program_code::origin program_code::origin_of(const device::cuda::driver& cu, CUfunction handle) const {
  origin result = origin_of(handle);
  if (!result.name.empty()) return result;
  const char* name = nullptr;
  auto* const kernel = reinterpret_cast<CUkernel>(handle);
  if (cu.cuFuncGetName != nullptr && cu.cuFuncGetName(&name, handle) == CUDA_SUCCESS) {
    CUmodule module = nullptr;
    if (cu.cuFuncGetModule != nullptr && cu.cuFuncGetModule(&module, handle) == CUDA_SUCCESS) result.from = module;
  } else if (cu.cuKernelGetName != nullptr && cu.cuKernelGetName(&name, kernel) == CUDA_SUCCESS) {
    CUlibrary library = nullptr;
    if (cu.cuKernelGetLibrary != nullptr && cu.cuKernelGetLibrary(&library, kernel) == CUDA_SUCCESS)
      result.from = library;
  }
  if (name != nullptr) result.name = name;
  return result;
}

// Returns the image for machine code that nvcc has linked from several objects. The PTX is in another section of the
// file that contains the machine code.
std::shared_ptr<program_image> program_code::linked_image_of(const void* code) {
  if (code == nullptr) return nullptr;
  for (const mapped_object& object : mapped_objects()) {
    if (!object.contains(code)) continue;
    const auto [found, is_new] = linked_.try_emplace(object.path);
    if (!is_new) return found->second;
    const ptx::mapped_file file(object.path);
    if (ptx::elf_file(file.content()).named(ptx::linked_fat_binaries_section).empty()) return nullptr;
    tolerantly([&, image = &found->second] {
      ptx::device_code all = ptx::device_code_in(file.content(), object.path);
      if (all.last_is_linked) *image = std::make_shared<program_image>(std::move(all.modules.back()));
    });
    return found->second;
  }
  return nullptr;
}

void program_code::read_files() {
  if (std::exchange(files_read_, true)) return;
  for (const mapped_object& object : mapped_objects()) {
    const std::string& path = object.path;
    const ptx::mapped_file file(path);
    const ptx::elf_file elf(file.content());
    if (elf.named(ptx::fat_binaries_section).empty() && elf.named(ptx::linked_fat_binaries_section).empty()) continue;
    tolerantly([&] {
      mutex_.assert_held();
      for (auto& image : images_in(path)) of_files_.push_back(std::move(image));
    });
  }
}

bool program_code::has_texts() const {
  const lock_guard lock(mutex_);
  const auto has = [](const std::shared_ptr<program_image>& image) { return image != nullptr && image->has_texts(); };
  return std::ranges::any_of(loaded_, [&](const auto& each) { return has(each.second.image); }) ||
         std::ranges::any_of(linked_, [&](const auto& each) { return has(each.second); }) ||
         std::ranges::any_of(of_files_, has);
}

std::shared_ptr<program_image> program_code::find(const origin& kernel, std::string& reason) {
  const lock_guard lock(mutex_);
  if (const auto found = loaded_.find(first_of(kernel.from)); found != loaded_.end()) {
    loaded_code& known = found->second;
    if (!known.image->has_texts())
      if (const auto linked = linked_image_of(std::exchange(known.at, nullptr))) known.image = linked;
    return known.image;
  }
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
  if (only == nullptr) reason = "the program contains no PTX for it";
  return only;
}

}  // namespace hpe::cuda_hooks
