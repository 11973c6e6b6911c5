// How long hpe takes to read, analyse and patch a module of 100 kernels (runtime/ptx/analysis and patch): the kernels
// of a CUDA course (tests/ptx/programs/course.cu), repeated under other names. A runtime that spreads kernels pays this
// once for each module that a program loads. One thread, processor time.

#include "runtime/ptx/analysis/analysis.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "bench/common/measure.h"
#include "runtime/ptx/parser.h"
#include "runtime/ptx/patch/patch.h"
#include "tests/ptx/kernel_runner.h"

namespace {

using namespace hpe::ptx;

constexpr unsigned wanted = 100;
constexpr double most_milliseconds = 50;

/// The PTX of a course's kernels once more and more, until there are so many; each copy has names of its own.
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

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = hpe::bench::parse(argc, argv,
                                           "the analysis of a module of 100 CUDA kernels, as hpe explain makes it, and "
                                           "their patch for launches over several devices");
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
  const std::vector<hpe::bench::result> results{
      {fmt::format("{} kernels with {} accesses: analysis and patch", kernels.size(), accesses), analysis_ms + patch_ms,
       "ms", fmt::format("<= {}", most_milliseconds), analysis_ms + patch_ms <= most_milliseconds},
      {fmt::format("patch alone, {} kernels may be spread", spread), patch_ms, "ms"},
      {fmt::format("reading of the module's {} KB of PTX", text.size() / 1000), read_ms, "ms"},
  };
  return hpe::bench::report("Analysis and patch of PTX, one thread, processor time", results, arguments);
}
