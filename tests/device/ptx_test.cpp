// Tests PTX modules through the interface runtime/device/device.h alone.

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runtime/base/granule.h"
#include "runtime/device/device_ptx_module.h"
#include "tests/device/processes.h"
#include "tests/device/support.h"
#include "tests/ptx/waiting_blocks.h"
#include "tests/temporary_folder.h"

namespace device_test {
namespace {

const std::string head = ".version 8.6\n.target sm_80\n.address_size 64\n";

// A kernel that adds a parameter to a variable, writes the sum to memory, and prints a line.
const std::string text = head + R"(
.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);
.visible .global .align 4 .u32 number = 30;
.visible .const .align 8 .u64 where = number;
.global .align 1 .b8 line[4] = {37, 117, 10, 0};
.visible .entry sum(.param .u64 to, .param .u32 more) {
  .local .align 8 .b8 arguments[8];
  .reg .b32 %r<4>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [more];
  ld.const.u64 %rd2, [where];
  atom.global.add.u32 %r2, [%rd2], %r1;
  add.u32 %r2, %r2, %r1;
  mov.u64 %rd3, arguments;
  cvta.local.u64 %rd4, %rd3;
  st.local.u32 [%rd3], %r2;
  mov.u64 %rd5, line;
  cvta.global.u64 %rd6, %rd5;
  {
    .param .b64 p0;
    st.param.b64 [p0], %rd6;
    .param .b64 p1;
    st.param.b64 [p1], %rd4;
    .param .b32 r;
    call.uni (r), vprintf, (p0, p1);
  }
  st.global.u32 [%rd1], %r2;
  ret;
}
)";

struct sum_parameters {
  std::uint32_t* to;
  std::uint32_t more;
};

class ptx : public testing::TestWithParam<const char*> {
 protected:
  const environment engine_{{{"HPE_PTX_ENGINE", "compiler"}}};  // the interpreter checks accesses more exactly
  machine m{GetParam()};
  std::unique_ptr<hpe::device::device_ptx_module> module = m.set().ptx()->load({text});

  // Places the module's variables in a granule of each device; the kernels write results to the next granule.
  void SetUp() override {
    for (unsigned d = 0; d < m.size(); ++d) place(d);
  }
  std::byte* results(unsigned device) { return m.address(device, hpe::granule_size); }

  void place(unsigned device) {
    std::byte* const base = m.address(device);
    m.device(device).map(base, 2 * hpe::granule_size);
    const auto globals = reinterpret_cast<std::uintptr_t>(base);
    const std::uintptr_t constants = globals + hpe::granule_size / 2;  // there are no managed variables
    host_buffer staged(m.set(), hpe::granule_size);
    for (const auto& c : module->place(device, {globals, constants, 0})) {
      std::memcpy(staged.data(), c.bytes.data(), c.bytes.size());
      std::byte* const part = base + (c.part == hpe::device::ptx_part::global ? 0 : hpe::granule_size / 2);
      m.finish(m.stream(device).copy(part + c.offset, staged.data(), c.bytes.size()));
    }
  }

  hpe::timepoint launch(unsigned device, const sum_parameters& parameters) {
    return m.stream(device).launch(m.set().find_kernel(module->id(), "sum"), {},
                                   std::as_bytes(std::span(&parameters, 1)).first(12));
  }
};

INSTANTIATE_TEST_SUITE_P(soft, ptx, testing::Values("soft:1", "soft:3"));

TEST_P(ptx, devices_close_the_text_of_a_module_that_they_have_read) {
  for (unsigned d = 0; d < m.size(); ++d) m.finish(launch(d, {reinterpret_cast<std::uint32_t*>(results(d)), 12}));
  for (const pid_t pid : soft_devices_of(::getpid()))
    for (const std::string& file : open_files_of(pid)) EXPECT_EQ(file.find("hpe-ptx"), std::string::npos) << file;
}

TEST_P(ptx, kernels_are_kept_where_the_options_say) {
  if (HPE_PTX_COMPILER == 0) GTEST_SKIP() << "built without LLVM";
  const temporary_folder folder;
  const auto run_with = [&](const char* place, const char* size, const char* engine = "compiler") {
    const environment chosen({{"HPE_KERNEL_CACHE", place},
                              {"HPE_KERNEL_CACHE_SIZE", size},
                              {"XDG_CACHE_HOME", folder.path().c_str()},
                              {"HPE_PTX_ENGINE", engine}});
    machine other(GetParam());
    const auto loaded = other.set().ptx()->load({head + ".visible .entry nothing() { ret; }\n"});
    for (unsigned d = 0; d < other.size(); ++d) loaded->place(d, {});
    for (unsigned d = 0; d < other.size(); ++d)
      other.finish(other.stream(d).launch(other.set().find_kernel(loaded->id(), "nothing"), {}, {}));
  };
  run_with("off", "1M");
  run_with("", "0");
  EXPECT_TRUE(folder.is_empty());
  run_with("", "1M");
  EXPECT_FALSE(std::filesystem::is_empty(folder / "hpe/kernels"));
  run_with((folder / "chosen").c_str(), "1M");
  EXPECT_FALSE(std::filesystem::is_empty(folder / "chosen"));
  run_with((folder / "short").c_str(), "1M", "auto");
  EXPECT_TRUE(std::filesystem::is_empty(folder / "short")) << "the interpreter runs a short kernel";
}

TEST_P(ptx, modules_are_described) {
  ASSERT_EQ(module->kernels().size(), 1U);
  EXPECT_EQ(module->kernels()[0].name, "sum");
  EXPECT_EQ(module->kernels()[0].parameter_bytes, 12U);
  EXPECT_EQ(module->variables().size(), 3U);
  EXPECT_EQ(module->bytes_of(hpe::device::ptx_part::global), 8U);
  EXPECT_EQ(module->bytes_of(hpe::device::ptx_part::constant), 8U);
  EXPECT_EQ(module->architecture(), 80U);
}

// All members of the descriptions, for kernels without a directive and for kernels with directives at and beyond the
// devices' limits.
TEST_P(ptx, kernels_are_described) {
  const auto described =
      m.set().ptx()->load({".version 8.6\n.target sm_90\n.address_size 64\n"
                           R"(
.func helper() { ret; }
.visible .entry plain() { ret; }
.visible .entry full(.param .u8 a, .param .u64 b, .param .align 16 .b8 c[20], .param .u16 d)
.maxntid 4, 5, 6 .maxclusterrank 3
{ .local .align 16 .b8 own[12]; .shared .align 4 .b8 box[20]; ret; }
.visible .entry exact() .explicitcluster .reqnctapercluster 4, 2 .reqntid 8, 2, 3 { ret; }
.visible .entry largest() .maxntid 1024 .maxclusterrank 16 { ret; }
.visible .entry beyond() .maxntid 1024, 2 .maxclusterrank 17 { ret; }
)"});
  const std::vector<hpe::device::ptx_kernel>& all = described->kernels();
  ASSERT_EQ(all.size(), 5U) << "a function is no kernel";
  using numbers = std::vector<std::uint32_t>;
  using three = std::array<std::uint32_t, 3>;
  struct expected {
    const char* name;
    numbers offsets, sizes;
    std::size_t bytes;
    std::uint32_t shared, local, threads;
    three block, cluster;
    std::uint32_t max_cluster;
    bool needs_cluster;
  };
  const expected rows[] = {
      {"plain", {}, {}, 0, 0, 0, 1024, {}, {}, 16, false},
      {"full", {0, 8, 16, 36}, {1, 8, 20, 2}, 38, 20, 12, 120, {}, {}, 3, false},
      {"exact", {}, {}, 0, 0, 0, 48, {8, 2, 3}, {4, 2, 1}, 16, true},
      {"largest", {}, {}, 0, 0, 0, 1024, {}, {}, 16, false},
      {"beyond", {}, {}, 0, 0, 0, 1024, {}, {}, 16, false},
  };
  for (std::size_t n = 0; n < std::size(rows); ++n) {
    SCOPED_TRACE(rows[n].name);
    EXPECT_EQ(all[n].name, rows[n].name);
    EXPECT_EQ(all[n].parameter_offsets, rows[n].offsets);
    EXPECT_EQ(all[n].parameter_sizes, rows[n].sizes);
    EXPECT_EQ(all[n].parameter_bytes, rows[n].bytes);
    EXPECT_EQ(all[n].shared_bytes, rows[n].shared);
    EXPECT_EQ(all[n].local_bytes, rows[n].local);
    EXPECT_EQ(all[n].max_threads, rows[n].threads);
    EXPECT_EQ(all[n].required_block, rows[n].block);
    EXPECT_EQ(all[n].required_cluster, rows[n].cluster);
    EXPECT_EQ(all[n].max_cluster, rows[n].max_cluster);
    EXPECT_EQ(all[n].needs_cluster, rows[n].needs_cluster);
  }
}

TEST_P(ptx, kernels_have_as_many_parameters_as_a_launch_takes) {
  const auto text_with = [](std::size_t bytes) {
    return head + fmt::format(".visible .entry many(.param .align 4 .b8 all[{}]) {{ ret; }}\n", bytes);
  };
  const auto most = m.set().ptx()->load({text_with(hpe::device::most_parameters)});
  EXPECT_EQ(most->kernels()[0].parameter_bytes, hpe::device::most_parameters);
  for (unsigned d = 0; d < m.size(); ++d) static_cast<void>(most->place(d, {0, 0, 0}));
  const std::vector<std::byte> parameters(hpe::device::most_parameters);
  m.finish(m.stream(0).launch(m.set().find_kernel(most->id(), "many"), {}, parameters));
  EXPECT_EQ(thrown_by([&] { m.set().ptx()->load({text_with(hpe::device::most_parameters + 1)}); }),
            HPE_ERROR_INVALID_ARGUMENT);
}

TEST_P(ptx, kernels_run_where_they_were_placed) {
  for (unsigned d = 0; d < m.size(); ++d) {
    std::byte* const result = results(d);
    host_buffer back(m.set(), hpe::granule_size);
    for (std::uint32_t turn = 1; turn <= 2; ++turn) {
      m.finish(launch(d, {reinterpret_cast<std::uint32_t*>(result), 12}));
      m.finish(m.stream(d).copy(back.data(), result, 4));
      EXPECT_EQ(back.as<std::uint32_t>()[0], 30 + 12 * turn) << "on device " << d;
    }
    const auto output = m.set().ptx()->take_output();
    ASSERT_EQ(output.size(), 2U);
    EXPECT_EQ(output[0].text + output[1].text, "42\n54\n");
    EXPECT_TRUE(m.set().ptx()->take_output().empty());
  }
}

TEST_P(ptx, failures_are_taken_once) {
  const hpe::timepoint failed = launch(0, {reinterpret_cast<std::uint32_t*>(0x40), 1});
  const hpe::timepoint again = launch(0, {reinterpret_cast<std::uint32_t*>(0x80), 1});
  EXPECT_EQ(m.outcome(failed), HPE_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(m.outcome(again), HPE_ERROR_LAUNCH_FAILED);
  const auto second = m.set().take_failure_of(again);
  ASSERT_TRUE(second);
  EXPECT_EQ(m.set().ptx()->fault_of(again), HPE_FAULT_ADDRESS);
  EXPECT_NE(std::string(second->what()).find("0x80"), std::string::npos) << second->what();
  const auto first = m.set().take_failure(-1);
  ASSERT_TRUE(first);
  EXPECT_NE(std::string(first->what()).find("0x40"), std::string::npos) << first->what();
  EXPECT_FALSE(m.set().take_failure(-1));
  EXPECT_FALSE(m.set().take_failure_of({}));
}

TEST_P(ptx, kernels_that_leave_their_shared_memory_are_stopped) {
  const auto overrun = m.set().ptx()->load({head + R"(
.extern .shared .align 4 .b8 buffer[];
.visible .entry overrun(.param .u64 bytes) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [bytes];
  mov.u64 %rd2, 0;
  mov.u32 %r1, 0xffffffff;
again:
  st.shared.u32 [%rd2], %r1;
  add.u64 %rd2, %rd2, 4;
  setp.lt.u64 %p1, %rd2, %rd1;
  @%p1 bra again;
  ret;
}
)"});
  for (unsigned d = 0; d < m.size(); ++d) static_cast<void>(overrun->place(d, {0, 0, 0}));
  const auto kernel = m.set().find_kernel(overrun->id(), "overrun");
  const auto launch_with = [&](std::uint64_t bytes, std::uint32_t shared) {
    hpe::device::shape shape;
    shape.grid[0] = 8;
    shape.shared_bytes = shared;
    return m.stream(0).launch(kernel, shape, std::as_bytes(std::span(&bytes, 1)));
  };
  for (const std::uint32_t shared : {0U, 4U, 1024U, 48U << 10}) {
    EXPECT_EQ(m.outcome(launch_with(shared == 0 ? 0 : shared, shared == 0 ? 4 : shared)), HPE_SUCCESS);
    const hpe::timepoint failed = launch_with(std::uint64_t{1} << 26, shared);
    ASSERT_EQ(m.outcome(failed), HPE_ERROR_LAUNCH_FAILED);
    const std::string words = m.set().take_failure_of(failed)->what();
    EXPECT_NE(words.find(fmt::format("shared memory, offset {}, where the block has {} bytes",
                                     (shared + 1023) / 1024 * 1024, shared)),
              std::string::npos)
        << words;
    EXPECT_NE(words.find("kernel overrun"), std::string::npos) << words;
  }
  EXPECT_FALSE(m.device(0).lost());
  m.finish(launch(0, {reinterpret_cast<std::uint32_t*>(results(0)), 12}));
}

// There are more blocks than CPU threads, and each block waits for the block after it.
TEST_P(ptx, blocks_may_wait_for_later_ones) {
  const auto chain = m.set().ptx()->load({waiting_blocks});
  for (unsigned d = 0; d < m.size(); ++d) static_cast<void>(chain->place(d, {0, 0, 0}));
  const auto kernel = m.set().find_kernel(chain->id(), "chain");
  hpe::device::shape shape;
  shape.grid[0] = 100;
  for (unsigned d = 0; d < m.size(); ++d) {
    std::byte* const flags = results(d);
    m.finish(m.stream(d).launch(kernel, shape, std::as_bytes(std::span(&flags, 1))));
    host_buffer back(m.set(), hpe::granule_size);
    m.finish(m.stream(d).copy(back.data(), flags, sizeof(std::uint32_t)));
    EXPECT_EQ(back.as<std::uint32_t>()[0], 100U) << "on device " << d;
  }
}

TEST_P(ptx, kernels_that_read_far_below_their_shared_memory_are_stopped) {
  const auto below = m.set().ptx()->load({head + R"(
.visible .entry below(.param .u32 address) {
  .shared .align 4 .b8 box[128];
  .reg .b32 %r<3>;
  ld.param.u32 %r1, [address];
  ld.shared.u32 %r2, [%r1+-1000000000];
  st.shared.u32 [box], %r2;
  ret;
}
)"});
  for (unsigned d = 0; d < m.size(); ++d) static_cast<void>(below->place(d, {0, 0, 0}));
  const auto kernel = m.set().find_kernel(below->id(), "below");
  for (const std::uint32_t address : {0xfff00000U, 0x80000000U}) {
    const hpe::timepoint failed = m.stream(0).launch(kernel, {}, std::as_bytes(std::span(&address, 1)));
    ASSERT_EQ(m.outcome(failed), HPE_ERROR_LAUNCH_FAILED);
    const std::string words = m.set().take_failure_of(failed)->what();
    EXPECT_NE(words.find("(shared memory, offset "), std::string::npos) << words;
    EXPECT_EQ(words.find("0x"), std::string::npos) << words;
  }
}

TEST_P(ptx, modules_are_gone_once_they_are_unloaded) {
  const std::uint32_t id = module->id();
  EXPECT_EQ(thrown_by([&] { m.set().find_kernel(id, "sum"); }), HPE_SUCCESS);
  module.reset();
  EXPECT_EQ(thrown_by([&] { m.set().find_kernel(id, "sum"); }), HPE_ERROR_NOT_FOUND);
}

TEST_P(ptx, parameters_have_a_limit) {
  std::vector<std::byte> many(hpe::device::most_parameters + 1);
  const auto kernel = m.set().find_kernel(module->id(), "sum");
  EXPECT_EQ(thrown_by([&] { m.stream(0).launch(kernel, {}, many); }), HPE_ERROR_INVALID_ARGUMENT);
}

TEST(ptx_of_gpus, is_one_text_whose_variables_the_driver_places) {
  if (gpus().empty()) GTEST_SKIP() << "no GPU";
  const machine m(gpus().front());
  EXPECT_EQ(thrown_by([&] { m.set().ptx()->load({text, text}); }), HPE_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(thrown_by([&] { m.set().ptx()->load({"no PTX"}); }), HPE_ERROR_INVALID_ARGUMENT);
  const auto module = m.set().ptx()->load({text});
  ASSERT_EQ(module->kernels().size(), 1U);
  EXPECT_EQ(module->kernels()[0].parameter_bytes, 12U);
  EXPECT_TRUE(module->variables().empty());
  m.device(0).map(m.address(0), hpe::granule_size);
  const sum_parameters parameters{reinterpret_cast<std::uint32_t*>(m.address(0)), 12};
  hpe::device::shape shape;
  shape.cooperative = true;
  const auto launch = [&] {
    return m.stream(0).launch(m.set().find_kernel(module->id(), "sum"), shape,
                              std::as_bytes(std::span(&parameters, 1)).first(12));
  };
  EXPECT_EQ(thrown_by(launch), HPE_ERROR_NOT_SUPPORTED);
  shape.cooperative = false;
  m.finish(launch());
}

}  // namespace
}  // namespace device_test
