// If loading a module has failed, later calls do not try again, because the cause is in the program's code.

#include "interpose/soft/cudart/module/cudart_module.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "hpe/check.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/memory/memory_table.h"
#include "runtime/base/log.h"
#include "runtime/ptx/files/fat_binary.h"

namespace hpe::cudart {

namespace {

bool has_ptx(const std::vector<ptx::fat_binary_entry>& entries) {
  return std::any_of(entries.begin(), entries.end(),
                     [](const auto& entry) { return entry.what == ptx::fat_binary_entry::kind::ptx; });
}

/// Whether a PTX text is CUDA's device runtime, which nvcc links with every program of several files. With the device
/// runtime, kernels launch kernels by functions of the driver that have no PTX (cnp...). So hpe does not link the
/// device runtime; if a program needs it, linking fails with a message that names the missing symbol.
bool is_device_runtime(const std::string& text) { return text.find("cnpGetLastError") != std::string::npos; }

/// Returns one PTX text of each container: the text for the newest architecture. If there are several containers,
/// leaves out the device runtime and containers with machine code only; if a PTX text needs their code, linking fails.
std::vector<std::string> read_ptx(const std::vector<const void*>& containers) {
  std::vector<std::string> texts;
  for (const void* const container : containers) {
    const auto entries = ptx::read_fat_binary_in_memory(container);
    if (!has_ptx(entries) && containers.size() > 1) continue;
    const std::string& text = ptx::choose_ptx(entries).text;
    if (containers.size() == 1 || !is_device_runtime(text)) texts.push_back(text);
  }
  // Throws an error whose message names the options that nvcc needs.
  if (texts.empty()) texts.push_back(ptx::choose_ptx({}).text);
  return texts;
}

cudaError_t code_of_load(hpeStatus status, bool is_read) {
  if (status == HPE_ERROR_NOT_SUPPORTED && !is_read) return cudaErrorNoKernelImageForDevice;
  if (status == HPE_ERROR_INVALID_ARGUMENT || status == HPE_ERROR_NOT_SUPPORTED) {
    return is_read ? cudaErrorInvalidPtx : cudaErrorInvalidKernelImage;
  }
  return translate(status);
}

}  // namespace

hpeKernel kernel::handle() {
  const lock_guard lock(mutex_);
  find();
  return handle_;
}

hpeKernelInfo kernel::info() {
  const lock_guard lock(mutex_);
  find();
  return info_;
}

void kernel::find() {
  hpeModule const loaded = owner_->handle();
  if (found_in_ == loaded) return;
  require(::hpeModuleGetKernel(&handle_, loaded, name_.c_str()) == HPE_SUCCESS, cudaErrorInvalidDeviceFunction);
  check(::hpeKernelGetInfo(handle_, &info_));
  found_in_ = loaded;
}

void kernel::set_dynamic_shared_limit(std::size_t bytes, std::size_t most_of_a_block) {
  const lock_guard lock(mutex_);
  find();
  require(bytes + info_.shared_bytes <= most_of_a_block, cudaErrorInvalidValue);
  dynamic_shared_limit_ = bytes;
}

std::size_t kernel::dynamic_shared_limit() {
  constexpr std::size_t without_opting_in = std::size_t{48} << 10;
  const lock_guard lock(mutex_);
  find();
  return std::max(dynamic_shared_limit_,
                  without_opting_in - std::min<std::size_t>(without_opting_in, info_.shared_bytes));
}

void kernel::set_carveout(int percent) {
  require(percent >= cudaSharedmemCarveoutDefault && percent <= cudaSharedmemCarveoutMaxShared, cudaErrorInvalidValue);
  const lock_guard lock(mutex_);
  carveout_ = percent;
}

int kernel::carveout() {
  const lock_guard lock(mutex_);
  return carveout_;
}

void kernel::change_cluster(const std::function<void(cluster_settings&)>& change) {
  const lock_guard lock(mutex_);
  change(cluster_);
}

kernel::cluster_settings kernel::cluster() {
  const lock_guard lock(mutex_);
  return cluster_;
}

cudart_module::~cudart_module() {
  if (handle_ != nullptr) ::hpeModuleUnload(handle_);
}

hpeModule cudart_module::handle() {
  const lock_guard lock(mutex_);
  require(failure_ == cudaSuccess, failure_);
  if (handle_ == nullptr) handle_ = load();
  return handle_;
}

hpeModule cudart_module::load() {
  bool is_read = false;
  try {
    if (texts_.empty()) texts_ = read_ptx(containers_);
    is_read = true;
    std::vector<const char*> texts;
    for (const std::string& text : texts_) texts.push_back(text.c_str());
    hpeModule loaded = nullptr;
    check(::hpeModuleLoadRecorded(&loaded, texts.data(), texts.size()));
    for (const variable& each : managed_) *each.managed = enter(loaded, each.name, 0, true).address;
    return loaded;
  } catch (const error& caught) {
    failure_ = code_of_load(caught.status(), is_read);
    why_it_failed_ = caught.what();
    log(log_level::error, "CUDA code of this program cannot run on soft devices: {}", caught.what());
    throw failure(failure_);
  }
}

std::vector<std::string> cudart_module::kernel_names() {
  static_cast<void>(handle());  // reads the texts
  const lock_guard lock(mutex_);
  std::vector<std::string> names;
  constexpr std::string_view directive = ".entry", space = " \t\r\n";
  for (const std::string_view text : texts_) {
    for (auto at = text.find(directive); at != text.npos; at = text.find(directive, at + 1)) {
      const auto begin = text.find_first_not_of(space, at + directive.size());
      if (begin == text.npos || begin == at + directive.size()) continue;
      names.emplace_back(text.substr(begin, text.find_first_of(" \t\r\n(", begin) - begin));
    }
  }
  return names;
}

std::string cudart_module::why_it_failed() {
  const lock_guard lock(mutex_);
  return why_it_failed_;
}

memory_range cudart_module::enter(hpeModule loaded, const std::string& name, int device, bool is_managed) {
  memory_range range;
  require(::hpeModuleGetVariable(&range.address, &range.size, loaded, name.c_str(), device) == HPE_SUCCESS,
          cudaErrorInvalidSymbol);
  if (std::find(entered_.begin(), entered_.end(), range.address) == entered_.end()) {
    const allocation_kind kind = is_managed ? allocation_kind::managed_variable : allocation_kind::variable;
    memory_.add({.base = range.address, .size = range.size, .kind = kind, .device = device});
    entered_.push_back(range.address);
  }
  return range;
}

memory_range cudart_module::locate(const std::string& name, int device) {
  hpeModule const loaded = handle();
  const lock_guard lock(mutex_);
  return enter(loaded, name, device, false);
}

void cudart_module::unload() noexcept {
  const lock_guard lock(mutex_);
  for (const void* const base : entered_) memory_.remove(base);
  entered_.clear();
  if (handle_ != nullptr) ::hpeModuleUnload(std::exchange(handle_, nullptr));
}

}  // namespace hpe::cudart
