#include "interpose/gpu/check/analysed_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "interpose/gpu/work/launch_parameters.h"
#include "runtime/base/demangled.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/ptx/analysis/words.h"

namespace hpe::cuda_hooks {

namespace {

using ptx::analysis::access_kind;

check::use use_of(const spread::certain_access& a) {
  switch (a.what) {
    case access_kind::read: return a.by->is_strong() ? check::use::strong_read : check::use::read;
    case access_kind::write: return a.by->is_strong() ? check::use::atomic : check::use::write;
    case access_kind::atomic: break;
  }
  return check::use::atomic;
}

}  // namespace

std::shared_ptr<analysed_kernels::kernel> analysed_kernels::look_up(CUfunction handle) const {
  auto made = std::make_shared<kernel>();
  program_code& code = program_code::of_process();
  const program_code::origin from = code.origin_of(cu_, handle);
  made->name = from.name.empty() ? "a kernel without a name" : fmt::format("kernel {}", demangled(from.name));
  if (from.name.empty()) return made;
  std::string reason;
  const std::shared_ptr<program_image> image = code.find(from, reason);
  if (image != nullptr) made->program = image->program();
  if (made->program == nullptr || made->program->find_kernel(from.name) == nullptr) {
    log(log_level::debug, "HPE_CHECK: the accesses of {} are not known: {}", made->name,
        image != nullptr ? image->failure() : reason);
    return made;
  }
  try {
    made->model = std::make_unique<spread::kernel_model>(made->program, from.name);
  } catch (const error& e) {
    log(log_level::debug, "HPE_CHECK: the accesses of {} are not known: {}", made->name, e.what());
    return made;
  }
  for (const ptx::formal_parameter& each : made->model->analysis().kernel->formals) {
    made->offsets.push_back(each.offset);
    made->sizes.push_back(each.size);
  }
  const ptx::analysis::words words(*made->program, made->model->analysis());
  for (const ptx::analysis::access& a : made->model->analysis().accesses)
    made->places.push_back(a.inside == nullptr ? words.place(made->model->analysis().kernel->code[a.position])
                                               : std::string());
  return made;
}

std::shared_ptr<analysed_kernels::kernel> analysed_kernels::find(CUfunction handle) {
  std::shared_ptr<analysis> found;
  {
    const lock_guard lock(mutex_);
    std::shared_ptr<analysis>& known = kernels_[handle];
    if (known == nullptr) known = std::make_shared<analysis>();
    found = known;
  }
  std::call_once(found->once, [&] { found->its = look_up(handle); });
  return found->its;
}

void analysed_kernels::forget() {
  const lock_guard lock(mutex_);
  kernels_.clear();
}

launch_accesses analysed_kernels::describe(const program_launch& launch,
                                           const std::shared_ptr<const check::call_place>& place) {
  const std::shared_ptr<kernel> its = find(launch.function);
  launch_accesses result;
  check::checked_operation what{its->name, place, true};
  const auto finish = [&] {
    result.what = std::make_shared<const check::checked_operation>(std::move(what));
    return result;
  };
  std::vector<std::byte> parameters;
  if (its->model != nullptr) parameters = parameters_of(*its->model->analysis().kernel, launch);
  if (its->model == nullptr || parameters.size() != its->model->analysis().kernel->formals_size) {
    // Such a kernel may follow pointers in memory.
    result.writes_anywhere = result.tells_host = true;
    for (const CUdeviceptr word : words_of(cu_, launch).value_or(std::vector<CUdeviceptr>()))
      what.pointers.emplace_back(0, word);
    return finish();
  }
  what.pointers = check::pointers_in(its->offsets, its->sizes, parameters);
  what.source_of = [its](std::uint32_t site, check::use /*how*/) {
    return site - 1 < its->places.size() ? its->places[site - 1] : std::string();
  };
  std::string key;
  its->model->append_key(key, {launch.grid, launch.block, parameters.data(), parameters.size()});
  const lock_guard lock(its->of_launches);
  if (its->known.size() == most_known) its->known.clear();
  const auto [found, is_new] = its->known.try_emplace(std::move(key));
  if (is_new) found->second = accesses_of(*its, launch, parameters);
  result = found->second;
  return finish();
}

launch_accesses analysed_kernels::accesses_of(const kernel& its, const program_launch& launch,
                                              const std::vector<std::byte>& parameters) {
  const spread::kernel_model& model = *its.model;
  const ptx::analysis::kernel_analysis& analysis = model.analysis();
  launch_accesses result;
  result.writes_anywhere = model.writes_anywhere() || analysis.uses_other_memory;
  const spread::launch shape{launch.grid, launch.block, parameters.data(), parameters.size()};
  const auto pointer = [&](std::uint32_t n) { return pointer_in(parameters, model.pointers()[n].offset); };
  std::vector<bool> all_writes_are_certain(model.pointers().size(), true);
  std::vector<spread::certain_access> certain = model.certain().of(shape);
  for (std::uint32_t n = 0; n < analysis.accesses.size(); ++n) {
    const ptx::analysis::access& a = analysis.accesses[n];
    if (a.what == access_kind::read) continue;
    const ptx::instruction* const by = a.inside == nullptr ? &analysis.kernel->code[a.position] : nullptr;
    result.tells_host |= by == nullptr || a.what == access_kind::atomic || by->is_strong();
    const bool is_certain = std::ranges::any_of(
        certain, [&](const spread::certain_access& c) { return c.number == n + 1 && !c.is_partial; });
    if (is_certain) continue;
    for (const ptx::analysis::address_form& form : a.forms)
      if (const auto to = model.pointer_of(form)) all_writes_are_certain[*to] = false;
  }
  for (std::uint32_t n = 0; n < model.pointers().size(); ++n)
    if (model.pointers()[n].is_written && !all_writes_are_certain[n]) result.written.push_back(pointer(n));
  for (const spread::certain_access& c : certain) {
    for (const auto& [begin, end] : c.ranges) {
      result.certain.push_back({begin, end, use_of(c), c.number});
      result.pointers.push_back(pointer(c.pointer));
    }
    if (c.what == access_kind::write) continue;
    for (std::uint32_t n = 0; n < model.pointers().size(); ++n)
      if (model.pointers()[n].is_written && model.certain().may_follow_write(c.number, n))
        result.written_before.push_back(pointer(n));
  }
  return result;
}

}  // namespace hpe::cuda_hooks
