// The operations of programs. The sizes are so small that an operation takes milliseconds, but slightly more than two
// blocks if one block would hide errors.

#include <algorithm>
#include <memory>

#include "hpe/ptx.h"
#include "hpe/spread.h"
#include "tests/sweep/runner.h"

namespace sweep {

namespace {

using arm_function = std::function<void()>;

constexpr std::size_t small = 3000;
constexpr std::size_t middle = 5 * model_block + 100;
constexpr std::size_t two_homes = granule + 3 * model_block;

part all_of(memory* m) { return {m, 0, m->bytes}; }
// Returns a part of a striped array that begins in the first home and ends in the second.
part across_homes(memory* m) { return {m, granule - 2 * model_block - 50, 4 * model_block}; }

void allocations(world& w, const arm_function& arm) {
  arm();
  std::vector<memory*> made = {w.allocate(middle, 0),
                               w.allocate(middle, 1),
                               w.allocate(small, 1),
                               w.allocate_host(middle),
                               w.allocate_host(small),
                               w.allocate_striped(two_homes),
                               w.allocate_striped(3 * granule, granule)};
  std::erase(made, nullptr);
  for (memory* m : made) w.write({m, m->bytes / 2, 100}, 7);
  for (memory* m : made) w.free(m);
}

void kept_memory(world& w, const arm_function& arm) {
  memory* first = w.allocate(middle, 0);
  w.write(all_of(first), 3);
  w.free(first);
  arm();
  memory* again = w.allocate(middle, 0);
  if (again == nullptr) return;
  w.read(all_of(again));
  w.write(all_of(again), 9);
  w.free(again);
}

void small_objects(world& w, const arm_function& arm) {
  arm();
  std::vector<memory*> made;
  for (int i = 0; i < 4; ++i) made.push_back(w.allocate(small + 40000 * i, i % 2));
  for (memory* m : made)
    if (m != nullptr) w.launch_add(0, all_of(m), 3);
  w.free(made[1]);
  made[1] = w.allocate(small, 1);
  if (made[1] != nullptr) w.read(all_of(made[1]));
}

// Fills a part of a striped array that crosses homes, after CPU code and devices have used the array.
void fill_striped(world& w, const arm_function& arm) {
  memory* m = w.allocate_striped(two_homes);
  w.write(all_of(m), 1);
  w.launch_add(0, {m, 0, granule}, 1);
  w.launch_add(1, {m, granule, m->bytes - granule}, 1);
  w.read(all_of(m));
  arm();
  w.set(across_homes(m), 77);
  w.write({m, granule - 10, 20}, 5);
  w.set(all_of(m), 78);
}

void fill(world& w, const arm_function& arm) {
  memory* m = w.allocate(middle, 1);
  memory* h = w.allocate_host(middle);
  w.write(all_of(m), 1);
  arm();
  w.set({m, 100, 2 * model_block}, 50);
  w.set({m, 4 * model_block + 10, 5}, 51);
  w.set({h, 100, 2 * model_block}, 52);
  w.set(all_of(m), 53);
}

void copy_in(world& w, const arm_function& arm) {
  memory* m = w.allocate(middle, 1);
  memory* s = w.allocate_striped(two_homes);
  memory* h = w.allocate_host(middle);
  w.write(all_of(m), 1);
  w.write(across_homes(s), 2);
  arm();
  w.copy_in({m, 70, 3 * model_block}, 20);  // so large that it is copied in several chunks
  w.copy_in({m, 5, 1}, 21);
  w.copy_in(across_homes(s), 22);
  w.copy_in({h, 9, model_block}, 23);
}

void copy_out(world& w, const arm_function& arm) {
  memory* m = w.allocate(middle, 1);
  memory* s = w.allocate_striped(two_homes);
  memory* h = w.allocate_host(middle);
  w.write(all_of(m), 1);
  w.launch_add(1, {m, 0, 3 * model_block}, 1);
  w.write(across_homes(s), 2);
  w.set({s, granule - 10, 20}, 3);
  arm();
  w.copy_out(all_of(m));
  w.copy_out({m, 2 * model_block - 1, 2});
  w.copy_out(across_homes(s));
  w.copy_out({h, 9, model_block});
}

void copy_across(world& w, const arm_function& arm) {
  memory* a = w.allocate(middle, 0);
  memory* b = w.allocate(middle, static_cast<int>(w.devices()) - 1);
  memory* s = w.allocate_striped(two_homes);
  memory* h = w.allocate_host(middle);
  w.write(all_of(a), 1);
  w.write(all_of(b), 2);
  w.read(all_of(b));
  w.write(across_homes(s), 3);
  arm();
  w.copy({b, 10, 3 * model_block}, {a, 20, 3 * model_block});
  w.copy({s, granule - model_block, 2 * model_block}, {b, 0, 2 * model_block});
  w.copy({a, 100, 2 * model_block}, {s, granule - model_block - 7, 2 * model_block});
  w.copy({h, 0, model_block}, {s, granule - 50, model_block});
  w.copy({b, 0, model_block}, {h, 100, model_block});
}

void launches(world& w, const arm_function& arm) {
  memory* a = w.allocate(middle, 0);
  memory* b = w.allocate(middle, 1);
  memory* s = w.allocate_striped(two_homes);
  memory* h = w.allocate_host(middle);
  w.write(all_of(a), 1);
  w.write(all_of(b), 2);
  arm();
  w.launch_add(0, {a, 50, 2 * model_block}, 3);
  w.write({a, 0, 10}, 9);
  w.launch_copy(1, {b, 0, 3 * model_block}, {a, 0, 3 * model_block});
  w.launch_add(1, across_homes(s), 4);
  w.launch_copy(0, {a, 10, model_block}, across_homes(s).begin == 0 ? all_of(a) : part{s, 0, model_block});
  w.launch_add(1, {h, 0, 1000}, 5);
  w.launch_add(0, {b, 0, model_block}, 6, true);
  w.synchronize();
}

void unreachable(world& w, const arm_function& arm) {
  // The last device is on another switch, so the memory migrates to that device.
  memory* a = w.allocate(middle, 0);
  memory* b = w.allocate(middle, 3);
  w.write(all_of(a), 1);
  w.launch_add(0, {a, 0, 2 * model_block}, 1);
  w.write(all_of(b), 2);
  arm();
  w.launch_add(3, all_of(a), 3);
  w.launch_copy(2, {a, 10, 2 * model_block}, {b, 0, 2 * model_block});
  w.launch_copy(0, {b, 0, 2 * model_block}, {a, 20, 2 * model_block});
}

void teams(world& w, const arm_function& arm) {
  memory* s = w.allocate_striped(two_homes);
  memory* b = w.allocate(4 * model_block, 1);
  w.write(across_homes(s), 1);
  w.write(all_of(b), 2);
  arm();
  w.team_add({0, 1}, across_homes(s), 3);
  w.team_add({1, 0}, all_of(b), 4);
  w.read({b, 0, 100});
  w.synchronize();
}

void enqueue(world& w, const arm_function& arm) {
  memory* b = w.allocate(middle, 1);
  w.write(all_of(b), 2);
  arm();
  w.enqueue(1, {b, 10, 2 * model_block});
}

void rolling_upload(world& w, const arm_function& arm) {
  memory* m = w.allocate(12 * model_block, 1);
  w.advise(m, HPE_ADVISE_ROLLING);
  w.launch_add(1, all_of(m), 1);
  arm();
  for (std::size_t at = 0; at < m->bytes; at += model_block) w.write({m, at, model_block}, 5);
  w.launch_add(1, all_of(m), 2);
}

void touches(world& w, const arm_function& arm) {
  memory* m = w.allocate(12 * model_block, 0);
  memory* s = w.allocate_striped(two_homes);
  w.write(all_of(m), 1);
  w.launch_add(0, all_of(m), 1);
  w.set(across_homes(s), 6);
  arm();
  for (std::size_t at = 0; at < m->bytes; at += model_block / 2) w.read({m, at, model_block / 2});
  w.write({m, 3 * model_block - 10, 20}, 4);
  w.write(across_homes(s), 5);
  w.read(across_homes(s));
}

void migration(world& w, const arm_function& arm) {
  memory* m = w.allocate(middle, 0);
  memory* s = w.allocate_striped(two_homes);
  w.write(all_of(m), 1);
  w.launch_add(0, {m, 0, 2 * model_block}, 1);
  w.write(across_homes(s), 2);
  w.set({s, granule - 10, 20}, 3);
  arm();
  w.migrate(m, 1);
  w.launch_add(1, {m, 0, 100}, 1);
  w.migrate(s, 1);
}

void prefetches(world& w, const arm_function& arm) {
  memory* m = w.allocate(middle, 0);
  memory* s = w.allocate_striped(two_homes);
  w.write(all_of(m), 1);
  w.launch_add(0, {m, 0, 2 * model_block}, 1);
  w.write(across_homes(s), 2);
  arm();
  w.prefetch(all_of(m), HPE_HOST);
  w.read(all_of(m));
  w.prefetch(across_homes(s), 1);
  w.launch_add(0, {s, 0, 100}, 1);
  w.prefetch(across_homes(s), HPE_HOST);
  w.write(across_homes(s), 8);
}

constexpr const char* ptx_text = R"(.version 7.0
.target sm_75
.address_size 64
.global .align 4 .u32 counter = 41;
.visible .entry add_one(.param .u64 data, .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  cvt.u64.u32 %rd2, %r5;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u8 %r6, [%rd3];
  add.s32 %r6, %r6, 1;
  st.global.u8 [%rd3], %r6;
DONE:
  ret;
}
)";

// Loads the module, launches its kernel by launch(kernel, shape, parameters, bytes, access), and unloads the module.
template <class Launch>
void use_ptx(world& w, memory* m, const char* name, const Launch& launch) {
  hpeModule module = nullptr;
  hpeKernel kernel = nullptr;
  w.call("hpeModuleLoadPtx", [&] { return hpeModuleLoadPtx(&module, &ptx_text, 1); });
  if (module == nullptr) return;
  const auto unloaded = std::make_shared<bool>(false);
  w.at_end([unloaded, module, &w] {
    if (!*unloaded) w.call("hpeModuleUnload", [&] { return hpeModuleUnload(module); });
  });
  w.call("hpeModuleGetKernel", [&] { return hpeModuleGetKernel(&kernel, module, "add_one"); });
  void* variable = nullptr;
  std::size_t size = 0;
  w.call("hpeModuleGetVariable", [&] { return hpeModuleGetVariable(&variable, &size, module, "counter", 1); });
  if (kernel != nullptr) {
    constexpr std::uint32_t count = 1000;
    const part used{m, 20, count};
    struct {
      std::uint8_t* data;
      std::uint32_t count;
    } const parameters{m->data + 20, count};
    const hpeGrid shape{{8, 1, 1}, {128, 1, 1}, 0, 0, {0, 0, 0}};
    const hpeAccess access{parameters.data, count, HPE_INOUT};
    std::vector<std::uint8_t> after(m->model.begin() + 20, m->model.begin() + 20 + count);
    for (std::uint8_t& b : after) ++b;
    w.call(name, [&] { return launch(kernel, shape, &parameters, 12, access); }, {{used, after}});
  }
  w.call("hpeModuleUnload", [&] { return hpeModuleUnload(module); });
  *unloaded = w.succeeded();
}

void ptx(world& w, const arm_function& arm) {
  memory* m = w.allocate(middle, 1);
  w.write(all_of(m), 1);
  arm();
  use_ptx(
      w, m, "hpeLaunchGrid",
      [](hpeKernel kernel, const hpeGrid& shape, const void* parameters, std::size_t bytes, const hpeAccess& access) {
        return hpeLaunchGrid(1, kernel, &shape, parameters, bytes, &access, 1, nullptr);
      });
}

// The first launch over several devices loads a module with the kernel's patched code.
void over(world& w, const arm_function& arm) {
  memory* m = w.allocate(middle, 1);
  w.write(all_of(m), 1);
  arm();
  use_ptx(w, m, "hpeLaunchOver",
          [](hpeKernel kernel, const hpeGrid& shape, const void* parameters, std::size_t bytes, const hpeAccess&) {
            return hpeLaunchOver(nullptr, 0, kernel, &shape, parameters, bytes, nullptr);
          });
}

// There is more data than host memory may hold (HPE_HOST_MEMORY), so the operations move data from and to the spill
// file. All data fits into the device's memory, because if mappings run out, a region becomes a single block, which
// must fit.
void spilled(world& w, const arm_function& arm) {
  memory* m = w.allocate(10 * granule + 100, 1);
  w.write(all_of(m), 1);
  arm();
  w.launch_add(1, {m, 5, granule}, 1);
  w.read({m, 3 * granule - 50, 100});
  w.copy_out({m, 5 * granule - 50, model_block});
  w.copy_in({m, 8 * granule - 50, model_block}, 9);
  w.write({m, 4 * granule + 7, 100}, 5);
}

void nothing(world& w, const arm_function& arm) {
  memory* m = w.allocate(middle, 1);
  w.write(all_of(m), 1);
  arm();
  w.launch_add(1, all_of(m), 1);
}

}  // namespace

std::span<const scenario> scenarios() {
  static const std::vector<scenario> all = [] {
    std::vector<scenario> result = {
        {"start", "soft:2", {}, nothing, true},
        {"allocations", "soft:2", {}, allocations},
        {"kept_memory", "soft:2", {{"HPE_KEPT_MEMORY", "16M"}}, kept_memory},
        {"small_objects", "soft:2", {}, small_objects},
        {"fill", "soft:2", {}, fill},
        {"fill_striped", "soft:2", {}, fill_striped},
        {"copy_in", "soft:2", {}, copy_in},
        {"copy_out", "soft:2", {}, copy_out},
        {"copy_across", "soft:2", {}, copy_across},
        {"copy_switches", "soft:2x1", {}, copy_across},
        {"launches", "soft:2", {}, launches},
        {"unreachable", "soft:2x2", {}, unreachable},
        {"teams", "soft:2", {}, teams},
        {"enqueue", "soft:2", {}, enqueue},
        {"rolling_upload", "soft:2", {{"HPE_ROLLING_WINDOW", "128k"}}, rolling_upload},
        {"touches", "soft:2", {{"HPE_PREFETCH_WINDOW", "256k"}}, touches},
        {"migration", "soft:2", {}, migration},
        {"prefetches", "soft:2", {}, prefetches},
        {"spilled",
         "soft:2",
         {{"HPE_HOST_MEMORY", "16M"}, {"HPE_SPILL", "/dev/shm"}, {"HPE_ROLLING_WINDOW", "0"}},
         spilled},
        {"ptx", "soft:2", {{"HPE_PTX_ENGINE", "interpreter"}}, ptx},
        {"over", "soft:2", {{"HPE_PTX_ENGINE", "interpreter"}, {"HPE_SPREAD_CUT", "even"}}, over},
    };
    for (scenario& s : sharing_scenarios()) result.push_back(std::move(s));
    return result;
  }();
  return all;
}

}  // namespace sweep
