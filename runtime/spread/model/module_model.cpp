#include "runtime/spread/model/module_model.h"

#include <vector>

namespace hpe::spread {

namespace {

std::string joined(const std::vector<std::string>& sentences) {
  std::string all;
  for (const std::string& s : sentences) all += (all.empty() ? "" : "; ") + s;
  return all;
}

}  // namespace

module_model::module_model(const std::shared_ptr<const ptx::program>& program, const choice& wanted) {
  std::vector<const ptx::analysis::kernel_analysis*> analyses;
  for (const auto& f : program->functions) {
    if (!f->is_kernel || !f->is_defined || (wanted && !wanted(f->name))) continue;
    kernel& k = kernels_[f->name];
    k.model = std::make_unique<kernel_model>(program, f->name);
    analyses.push_back(&k.model->analysis());
  }
  patched_ = ptx::patch::patch(*program, analyses);
  for (const ptx::patch::patched_kernel& p : patched_.kernels) {
    kernel& k = kernels_.at(p.name);
    k.patched = p;
    k.obstacle = joined(p.obstacles);
    k.obstacle_in_programs = k.obstacle;
    if (!k.obstacle.empty()) continue;
    if (p.uses_variables) {
      k.obstacle_in_programs = "it uses variables of its program, which other GPUs cannot access";
    } else if (k.model->finds_pointers()) {
      k.obstacle_in_programs = "it reads pointers from memory, or makes accesses that hpe cannot analyse";
    }
  }
}

}  // namespace hpe::spread
