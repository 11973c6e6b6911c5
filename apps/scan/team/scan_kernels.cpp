#include "apps/scan/team/scan_kernels.h"

#include "apps/modules/modules.h"

namespace hpe::scan {

namespace {

template <class Parameters>
std::optional<kernel<Parameters>> find(const module& from, const std::string& name) {
  try {
    return kernel<Parameters>(from, name.c_str());
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_NOT_FOUND) throw;
    return std::nullopt;
  }
}

}  // namespace

std::string name_of(built_in op) {
  switch (op) {
    case built_in::sum: return "sum";
    case built_in::min: return "min";
    case built_in::max: return "max";
  }
  throw error(HPE_ERROR_INVALID_ARGUMENT, "the operator of a scan must be sum, min or max");
}

std::string own_module() { return modules::require("libhpe-scan-kernels.so"); }

kernel_set load_kernels(const operation& what) {
  if (what.element_size != 4 && what.element_size != 8)
    throw error(HPE_ERROR_INVALID_ARGUMENT,
                "elements of " + std::to_string(what.element_size) + " bytes cannot be scanned; 4 and 8 are possible");
  const module own(own_module());
  const module from = what.module.empty() ? own : module(what.module);
  const auto name = [&](const char* stage) { return "scan_" + std::string(stage) + "_" + what.suffix; };
  return {what.element_size,
          {from, name("reduce").c_str()},
          {from, name("sums").c_str()},
          {from, name("chunks").c_str()},
          find<single_pass_parameters>(from, name("single_pass")),
          {own, "scan_fence"}};
}

}  // namespace hpe::scan
