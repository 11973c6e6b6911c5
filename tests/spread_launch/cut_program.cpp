// Random kernels (kernel_generator.h) over an array of 16 MiB, each launched once as announced work. For each kernel,
// prints the digest of the array, or the error if the launch cannot be cut.
//   spread-cut-program SEED...

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "hpe/announce.h"
#include "hpe/spread.h"
#include "tests/ptx/kernel_generator.h"

namespace {

void must(hpeStatus status) {
  if (status == HPE_SUCCESS) return;
  std::printf("%s\n", hpeGetLastErrorMessage());
  std::exit(1);
}

constexpr hpeGrid shape{{64, 32, 16}, {8, 4, 4}, 0, 0, {0, 0, 0}};
constexpr std::size_t bytes = std::size_t{64} * 32 * 16 * 8 * 4 * 4 * sizeof(std::uint32_t);

void run(unsigned seed) {
  const std::string text = hpe::ptx::test::kernel_generator(seed).text_with_results();
  const char* const texts[] = {text.c_str()};
  hpeModule module = nullptr;
  hpeKernel kernel = nullptr;
  must(hpeModuleLoadPtx(&module, texts, 1));
  must(hpeModuleGetKernel(&kernel, module, "k"));
  void *array0 = nullptr, *array1 = nullptr, *table = nullptr;
  must(hpeMallocOn(&array0, bytes, 0));
  must(hpeMallocOn(&array1, bytes, 0));
  must(hpeMallocOn(&table, 64, 0));
  must(hpeMemset(array0, 1, bytes));
  must(hpeMemset(array1, 2, bytes));
  std::uint32_t numbers[16];
  for (unsigned n = 0; n < 16; ++n) numbers[n] = (seed * 2654435761U + n * 40503U) % 50;
  must(hpeMemcpy(table, numbers, sizeof numbers));
  hpe::ptx::test::generated_parameters values{};
  values.array0 = reinterpret_cast<std::uint64_t>(array0);
  values.array1 = reinterpret_cast<std::uint64_t>(array1);
  values.table = reinterpret_cast<std::uint64_t>(table);
  values.n = seed * 2654435761U % 100;
  values.stride = seed * 40503U % 40;

  hpeAnnouncement work = nullptr;
  hpeSpread how{};
  const int device = 0;
  must(hpeAnnounce(&work, 1, nullptr, 0));
  must(hpeAnnouncedBegin(work));
  const hpeStatus status = hpeLaunchOver(&device, 1, kernel, &shape, &values, sizeof values, &how);
  if (status == HPE_SUCCESS)
    for (const hpeWork& part : how.work)
      if (part.line != 0) must(hpeWorkWait(part, nullptr));
  must(hpeAnnouncedEnd(work));
  if (status != HPE_SUCCESS) {
    std::printf("%u %s\n", seed, hpeGetLastErrorMessage());
  } else {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    const auto* const words = static_cast<const std::uint64_t*>(array0);
    for (std::size_t n = 0; n < bytes / sizeof *words; ++n) hash = (hash ^ words[n]) * 0x100000001b3ULL;
    std::printf("%u %016llx%s\n", seed, static_cast<unsigned long long>(hash),
                std::strstr(how.reason, "parts one after the other") != nullptr ? " in parts" : "");
  }
  for (void* const each : {array0, array1, table}) must(hpeFree(each));
  must(hpeModuleUnload(module));
}

}  // namespace

int main(int count, char** words) {
  for (int n = 1; n < count; ++n) run(static_cast<unsigned>(std::strtoul(words[n], nullptr, 10)));
  return 0;
}
