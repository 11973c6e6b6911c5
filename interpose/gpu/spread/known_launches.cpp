#include "interpose/gpu/spread/known_launches.h"

#include <algorithm>
#include <memory>
#include <type_traits>

#include "runtime/spread/model/kernel_model.h"

namespace hpe::cuda_hooks {

known_launches* known_launches::of_thread() {
  static thread_local bool has_ended = false;
  struct owner {
    const std::unique_ptr<known_launches> its = std::make_unique<known_launches>();
    ~owner() { has_ended = true; }
  };
  if (has_ended) return nullptr;
  static thread_local const owner all;
  return all.its.get();
}

std::vector<known_launches::key_part> known_launches::parts_of(const spread::kernel_model& kernel) {
  const std::vector<ptx::formal_parameter>& formals = kernel.analysis().kernel->formals;
  std::vector<key_part> result;
  const auto add = [&](std::uint32_t begin, std::uint32_t bytes) {
    for (std::uint32_t n = 0; n < formals.size(); ++n) {
      const std::uint32_t first = std::max(begin, formals[n].offset);
      const std::uint32_t last = std::min(begin + bytes, formals[n].offset + formals[n].size);
      if (first < last) result.push_back({n, first - formals[n].offset, last - first});
    }
  };
  for (const spread::kernel_model::pointer& p : kernel.pointers()) add(p.offset, sizeof(CUdeviceptr));
  for (const spread::kernel_model::bytes& b : kernel.decisive_parameters()) add(b.offset, b.size);
  return result;
}

bool known_launches::make_key(const program_launch& what, const std::vector<key_part>& parts) {
  struct {
    CUfunction function;
    CUstream stream;
    const char* obstacle;
    spread::dimension grid, block;
  } const first{what.function, what.stream, what.obstacle, what.grid, what.block};
  static_assert(std::has_unique_object_representations_v<decltype(first)>);
  if (what.extra != nullptr || (what.parameters == nullptr && !parts.empty())) return false;
  key_.assign(reinterpret_cast<const char*>(&first), sizeof first);
  for (const key_part& part : parts) {
    const auto* const parameter = static_cast<const char*>(what.parameters[part.parameter]);
    if (parameter == nullptr) return false;
    key_.append(parameter + part.offset, part.bytes);
  }
  return true;
}

known_launches::finding* known_launches::find(const program_launch& what, std::uint64_t version) {
  if (version_ != version) {
    kernels_.clear();
    launches_.clear();
    unknown_.clear();
    version_ = version;
  }
  const auto kernel = kernels_.find(what.function);
  if (kernel == kernels_.end()) return nullptr;
  if (!kernel->second) {
    const auto found = unknown_.find(what.stream);
    return found != unknown_.end() ? &found->second : nullptr;
  }
  if (!make_key(what, *kernel->second)) return nullptr;
  const auto found = launches_.find(std::string_view(key_));
  return found != launches_.end() ? &found->second : nullptr;
}

known_launches::finding& known_launches::unknown_on(CUstream stream) {
  if (unknown_.size() >= most_streams) unknown_.clear();
  return unknown_[stream];
}

void known_launches::add(const program_launch& what, const spread::kernel_model* kernel, const finding& found) {
  if (kernels_.size() >= most_kernels || launches_.size() >= most_launches) {
    kernels_.clear();
    launches_.clear();
  }
  auto its = kernels_.find(what.function);
  if (its == kernels_.end())
    its = kernels_.emplace(what.function, kernel != nullptr ? std::optional(parts_of(*kernel)) : std::nullopt).first;
  if (!its->second)
    unknown_on(what.stream) = found;
  else if (make_key(what, *its->second))
    launches_.insert_or_assign(key_, found);
}

}  // namespace hpe::cuda_hooks
