// The processor time, on one thread, of the two steps before a launch that hpe spreads over several devices:
// - reading, analysing and patching a module of 100 kernels (runtime/ptx/analysis and patch), once for each module
//   that a program loads. The kernels are those of a CUDA course (tests/ptx/programs/course.cu), repeated under other
//   names.
// - deciding where a launch runs and where its arrays are (runtime/spread), for a stencil: the first time, and for each
//   later launch.

#include "runtime/ptx/analysis/analysis.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "bench/common/measure.h"
#include "runtime/ptx/patch/patch.h"
#include "runtime/ptx/text/parser.h"
#include "runtime/spread/planner.h"
#include "tests/ptx/kernel_runner.h"

namespace {

using namespace hpe::ptx;

constexpr unsigned wanted = 100;
constexpr double most_milliseconds = 50;
constexpr double most_microseconds = 3;

/// Repeats the kernels of a PTX text under new names until the text has `kernels` kernels.
std::string module_of(const std::string& text, unsigned kernels) {
  const std::size_t first = text.find(".visible");
  if (first == std::string::npos) throw std::runtime_error("there are no kernels in the PTX");
  const std::string head = text.substr(0, first), body = text.substr(first);
  const auto all = parse({text});
  std::string result = head;
  unsigned made = 0;
  for (unsigned copy = 0; made < kernels; ++copy) {
    std::string renamed = body;
    for (const auto& f : all->functions) {
      if (!f->is_kernel) continue;
      const std::string name = f->name, other = fmt::format("{}_copy{}", name, copy);
      for (const std::string& before : {std::string(".entry "), std::string("["), std::string("\t.param .u64 "),
                                        std::string("\t.param .u32 "), std::string("\t.param .f32 ")}) {
        for (std::size_t at = 0; (at = renamed.find(before + name, at)) != std::string::npos; at += before.size()) {
          const char next = renamed[at + before.size() + name.size()];
          if (next != '(' && next != '\n' && renamed.compare(at + before.size() + name.size(), 7, "_param_") != 0)
            continue;
          renamed.replace(at + before.size(), name.size(), other);
        }
      }
      ++made;
    }
    result += renamed.substr(0, renamed.find("\t.section")) + "\n";
  }
  return result;
}

/// Lets a planner for two devices decide where a launch of stencil2D(out, in, width, height) of
/// tests/ptx/programs/single_gpu.cu runs and where its arrays are.
class decided_stencil {
 public:
  decided_stencil()
      : model_(parse({hpe::ptx::test::read_file(HPE_PTX_PROGRAMS "/single_gpu.ptx")}), "stencil2D"), planner_(two()) {
    const auto bytes = static_cast<std::uint64_t>(parameters_.width) * parameters_.width * sizeof(float);
    for (hpe::spread::kernel_array& a : arrays_) {
      a.bytes = bytes;
      a.granule = std::uint64_t{2} << 20;
      a.version = 1;
    }
    arrays_[0].address = parameters_.out;
    arrays_[1].address = parameters_.in;
    for (hpe::spread::kernel_array& a : arrays_)
      a.homes = hpe::spread::homes_under(planner_.first_placement(bytes, a.granule), a, two().devices);
  }

  void decide() {
    const hpe::spread::kernel_array* const all[] = {&arrays_[0], &arrays_[1]};
    static_cast<void>(planner_.decide(model_, {{512, 2048, 1}, {32, 8, 1}, &parameters_, sizeof parameters_}, all));
  }
  void forget() { planner_.forget(model_); }

 private:
  static hpe::spread::machine two() {
    hpe::spread::machine m;
    m.devices = 2;
    return m;
  }
  struct {
    std::uint64_t out = std::uint64_t{1} << 40, in = std::uint64_t{2} << 40;
    std::int32_t width = 16384, height = 16384;
  } parameters_;
  hpe::spread::kernel_model model_;
  hpe::spread::planner planner_;
  hpe::spread::kernel_array arrays_[2];
};

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      hpe::bench::parse(argc, argv,
                        "analysis of a module of 100 CUDA kernels, as by hpe explain, and "
                        "their patch for launches over several devices, and the decision for a launch");
  const std::string text = module_of(hpe::ptx::test::read_file(HPE_PTX_PROGRAMS "/course.ptx"), wanted);
  std::unique_ptr<program> parsed;
  const auto nothing = [] {};
  const hpe::bench::timing reading = hpe::bench::timed(arguments.repeats, nothing, [&] { parsed = parse({text}); });
  std::vector<analysis::kernel_analysis> kernels;
  std::size_t accesses = 0;
  const hpe::bench::timing analysis = hpe::bench::timed(arguments.repeats, nothing, [&] {
    kernels.clear();
    accesses = 0;
    for (const auto& f : parsed->functions) {
      if (!f->is_kernel || kernels.size() == wanted) continue;
      kernels.push_back(analysis::analyse(*parsed, *f));
      accesses += kernels.back().accesses.size();
    }
  });
  std::vector<const analysis::kernel_analysis*> analyses;
  for (const auto& k : kernels) analyses.push_back(&k);
  patch::patched_module patched;
  const hpe::bench::timing patching =
      hpe::bench::timed(arguments.repeats, nothing, [&] { patched = patch::patch(*parsed, analyses); });
  const double read_ms = reading.processor * 1e3, analysis_ms = analysis.processor * 1e3;
  const double patch_ms = patching.processor * 1e3;
  const auto spread = std::count_if(patched.kernels.begin(), patched.kernels.end(),
                                    [](const patch::patched_kernel& k) { return k.obstacles.empty(); });
  decided_stencil stencil;
  const hpe::bench::timing first = hpe::bench::timed(
      arguments.repeats, [&] { stencil.forget(); }, [&] { stencil.decide(); });
  constexpr int launches = 10000;
  const hpe::bench::timing again = hpe::bench::timed(arguments.repeats, nothing, [&] {
    for (int n = 0; n < launches; ++n) stencil.decide();
  });
  const double again_us = again.processor * 1e6 / launches;
  const std::vector<hpe::bench::result> results{
      {fmt::format("{} kernels with {} accesses: analysis and patch", kernels.size(), accesses), analysis_ms + patch_ms,
       "ms", fmt::format("<= {}", most_milliseconds), analysis_ms + patch_ms <= most_milliseconds},
      {fmt::format("patch alone, {} kernels may be spread", spread), patch_ms, "ms"},
      {fmt::format("reading of the module's {} KB of PTX", text.size() / 1000), read_ms, "ms"},
      {"decision for a launch, first", first.processor * 1e3, "ms"},
      {"decision for a launch, again", again_us, "us", fmt::format("<= {}", most_microseconds),
       again_us <= most_microseconds},
  };
  return hpe::bench::report("Analysis and patch of PTX, one thread, processor time", results, arguments);
}
