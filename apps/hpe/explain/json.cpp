#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "apps/command_line/report.h"
#include "apps/hpe/explain/explain_command.h"
#include "runtime/base/demangled.h"
#include "runtime/ptx/analysis/words.h"

namespace hpe::cli {

namespace {

using namespace ptx::analysis;
using nlohmann::json;

constexpr const char* axis_keys[] = {"x", "y", "z"};
constexpr const char* kind_names[] = {"read", "write", "atomic"};

class kernel_json {
 public:
  kernel_json(const ptx::program& p, const spread::module_model::kernel& k)
      : program_(p), how_(k), kernel_(k.model->analysis()), words_(p, kernel_) {}

  json of() {
    json object{{"name", kernel_.kernel->name},
                {"demangled", demangled(kernel_.kernel->name)},
                {"may_be_spread", how_.obstacle.empty()},
                {"obstacles", how_.patched.obstacles},
                {"obstacle_in_programs", how_.obstacle_in_programs.empty() ? json() : json(how_.obstacle_in_programs)},
                {"needs", kernel_.verdict.needs},
                {"counts_blocks", kernel_.verdict.counts_blocks},
                {"to_system_scope",
                 {{"atomics", kernel_.verdict.atomics},
                  {"fences", kernel_.verdict.fences},
                  {"ordered_accesses", kernel_.verdict.ordered_accesses}}},
                {"axes", json::array()},
                {"arrays", json::array()},
                {"loops", json::array()},
                {"accesses", json::array()}};
    for (std::size_t axis = 0; axis < kernel_.axes.size(); ++axis)
      if (kernel_.axes[axis]) object["axes"].push_back(axis_keys[axis]);
    for (const array_use& a : kernel_.arrays) object["arrays"].push_back(of(a));
    for (std::size_t n = 0; n < kernel_.loops.size(); ++n)
      object["loops"].push_back({{"counter", fmt::format("k{}", n + 1)}, {"place", words_.place(kernel_.loops[n])}});
    for (const access& a : kernel_.accesses) object["accesses"].push_back(of(a));
    return object;
  }

 private:
  json of_base(std::optional<quantity_id> base) const { return base ? json(words_.of_base(base)) : json(); }

  json of(const array_use& a) {
    json object{{"name", of_base(a.base)}, {"element", a.element},     {"reads", a.reads},
                {"writes", a.writes},      {"atomics", a.updates},     {"class", name_of(a.how)},
                {"cut_by", json::array()}, {"patterns", json::array()}};
    for (unsigned axis = 0; axis < 3; ++axis)
      if (a.is_cut_by(axis)) object["cut_by"].push_back(axis_keys[axis]);
    for (const access_pattern& p : a.patterns) {
      json pattern{{"class", name_of(p.how)},  {"block", json::object()},    {"inside", words_.of(p.local)},
                   {"reads", p.reads},         {"writes", p.writes},         {"atomics", p.updates},
                   {"offsets", json::array()}, {"neighbours", json::array()}};
      for (unsigned axis = 0; axis < 3; ++axis)
        if (p.blocks[axis] != 0) pattern["block"][axis_keys[axis]] = words_.of(p.blocks[axis]);
      for (const expression_id e : p.offsets) pattern["offsets"].push_back(words_.of(e));
      for (const expression_id e : p.neighbours) pattern["neighbours"].push_back(words_.of(e));
      object["patterns"].push_back(std::move(pattern));
    }
    return object;
  }

  json of(const access& a) {
    const ptx::function& f = a.inside != nullptr ? *a.inside : *kernel_.kernel;
    const ptx::instruction& i = f.code[a.position];
    json object{{"place", words_.place(i)},
                {"line", i.line},
                {"instruction", program_.text_of(f, i)},
                {"function", a.inside != nullptr ? json(a.inside->name) : json()},
                {"kind", kind_names[static_cast<std::size_t>(a.what)]},
                {"bytes", a.bytes},
                {"class", name_of(a.how)},
                {"forms", json::array()},
                {"where", json::array()}};
    for (const address_form& form : a.forms) {
      json one{{"class", name_of(form.how)},
               {"base", of_base(form.base)},
               {"address", words_.of(form.whole)},
               {"assumptions", json::array()}};
      const std::vector<assumption>& all = kernel_.walk->assumptions().all();
      for (std::size_t n = 0; n < all.size(); ++n)
        if ((form.assumes >> n & 1) != 0) one["assumptions"].push_back(words_.of(all[n]));
      object["forms"].push_back(std::move(one));
    }
    for (const comparison& c : a.where) object["where"].push_back(words_.of(c));
    return object;
  }

  const ptx::program& program_;
  const spread::module_model::kernel& how_;
  const kernel_analysis& kernel_;
  words words_;
};

}  // namespace

std::string explanation_as_json(const explained_file& file) {
  json object{{"program", "hpe explain"},         {"version", HPE_PACKAGE_VERSION},
              {"commit", command_line::commit()}, {"machine", command_line::machine()},
              {"time", command_line::time_now()}, {"file", file.path},
              {"without_ptx", file.without_ptx},  {"modules", json::array()}};
  for (const explained_module& m : file.modules) {
    json one{{"error", m.error.empty() ? json() : json(m.error)}, {"kernels", json::array()}};
    for (const spread::module_model::kernel* const k : m.kernels)
      one["kernels"].push_back(kernel_json(*m.program, *k).of());
    object["modules"].push_back(std::move(one));
  }
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace hpe::cli
