// Loading and unloading modules of PTX.

#include "tests/core/test_kernels.h"
#include "tests/ptx_launch/support.h"

namespace {

using namespace ptx_launch;
using numbers = hpe::array<std::uint32_t>;

const std::string head = ".version 8.6\n.target sm_80\n.address_size 64\n";

// Returns PTX with a kernel k that writes `number`.
std::string writer_of(std::uint32_t number) {
  return head +
         ".visible .entry k(.param .u64 to) {\n.reg .b64 %rd1;\nld.param.u64 %rd1, [to];\nst.global.u32 [%rd1], " +
         std::to_string(number) + ";\nret;\n}\n";
}

hpeStatus load(hpeModule* handle, const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return hpeModuleLoadPtx(handle, pointers.data(), pointers.size());
}

TEST(Modules, OfOneTextAreApart) {
  numbers result(1);
  const module one({writer_of(11)}), other({writer_of(22)}), again({writer_of(11)});
  EXPECT_NE(one.handle(), again.handle());
  for (const auto& [m, number] : {std::pair{&one, 11U}, {&other, 22U}, {&again, 11U}}) {
    m->launch(0, "k", blocks_of(1, 1), result.data());
    EXPECT_EQ(result[0], number);
  }
}

TEST(Modules, LinkTheirTexts) {
  const std::string user =
      head +
      ".extern .global .align 4 .u32 number;\n.visible .entry k(.param .u64 to) {\n.reg .b64 %rd1;\n"
      ".reg .b32 %r1;\nld.param.u64 %rd1, [to];\nld.global.u32 %r1, [number];\n"
      "st.global.u32 [%rd1], %r1;\nret;\n}\n";
  const std::string owner = head + ".visible .global .align 4 .u32 number = 1234;\n";
  numbers result(1);
  const module m({user, owner});
  m.launch(device_count() - 1, "k", blocks_of(1, 1), result.data());
  EXPECT_EQ(result[0], 1234U);

  hpeModule handle = nullptr;
  EXPECT_TRUE(fails(load(&handle, {user}), HPE_ERROR_INVALID_ARGUMENT, {"number"}));
  EXPECT_TRUE(fails(load(&handle, {owner, owner}), HPE_ERROR_INVALID_ARGUMENT, {"number"}));
  EXPECT_EQ(handle, nullptr);
}

TEST(Modules, AreRefusedWithTheReason) {
  hpeModule handle = nullptr;
  EXPECT_TRUE(fails(load(&handle, {"int main() {}"}), HPE_ERROR_INVALID_ARGUMENT, {"line 1"}));
  EXPECT_TRUE(fails(load(&handle, {""}), HPE_ERROR_INVALID_ARGUMENT, {"not PTX"}));
  EXPECT_TRUE(fails(load(&handle, {head + ".visible .entry k() {\n.reg .b32 %r1;\ntcgen05.alloc.cta %r1;\nret;\n}\n"}),
                    HPE_ERROR_NOT_SUPPORTED, {"line 6", "tcgen05.alloc.cta"}));
  EXPECT_TRUE(fails(load(&handle, {head + ".visible .entry k() {\ncall missing;\nret;\n}\n"}),
                    HPE_ERROR_INVALID_ARGUMENT, {"missing"}));
  EXPECT_TRUE(fails(load(nullptr, {writer_of(1)}), HPE_ERROR_INVALID_ARGUMENT));
  const char* nothing = nullptr;
  EXPECT_TRUE(fails(hpeModuleLoadPtx(&handle, &nothing, 1), HPE_ERROR_INVALID_ARGUMENT, {"text 0"}));
  EXPECT_TRUE(fails(hpeModuleLoadPtx(&handle, &nothing, 0), HPE_ERROR_INVALID_ARGUMENT, {"at least one text"}));
  EXPECT_TRUE(fails(hpeModuleLoadPtx(&handle, nullptr, 1), HPE_ERROR_INVALID_ARGUMENT, {"at least one text"}));
  const std::string large =
      head + ".visible .global .align 4 .b8 room[" + std::to_string(std::uint64_t{4} << 30) + "];\n";
  EXPECT_TRUE(fails(load(&handle, {large}), HPE_ERROR_OUT_OF_MEMORY));
  EXPECT_EQ(handle, nullptr);
}

TEST(Modules, HaveManagedVariablesOnceForAllDevices) {
  const module m({head + ".visible .global .attribute(.managed) .align 4 .u32 shared_count = 70;\n"
                         ".visible .global .align 4 .u32 own_count = 30;\n"
                         ".visible .global .attribute(.managed) .align 8 .u64 self = generic(shared_count);\n"
                         ".visible .entry k(.param .u64 to) {\n.reg .b64 %rd<3>;\n.reg .b32 %r<2>;\n"
                         "ld.param.u64 %rd0, [to];\nld.global.u64 %rd1, [self];\n"
                         "ld.global.u32 %r0, [%rd1];\nadd.u32 %r0, %r0, 1;\nst.global.u32 [shared_count], %r0;\n"
                         "ld.global.u32 %r1, [own_count];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [own_count], %r1;\n"
                         "st.global.v2.u32 [%rd0], {%r0, %r1};\nret;\n}\n"});
  auto* const shared = m.variable<std::uint32_t>("shared_count", 0);
  numbers result(2);
  std::uint32_t expected = 70;
  for (std::uint32_t round = 1; round <= 3; ++round) {
    for (int d = device_count() - 1; d >= 0; --d) {
      m.launch(d, "k", blocks_of(1, 1), result.data());
      EXPECT_EQ(result[0], ++expected);
      EXPECT_EQ(result[1], 30 + round);
      EXPECT_EQ(*shared, expected);
      EXPECT_EQ(m.variable<std::uint32_t>("shared_count", d), shared);
      EXPECT_EQ(*m.variable<std::uint64_t*>("self", d), reinterpret_cast<std::uint64_t*>(shared));
    }
    *shared = expected += 1000;
  }
}

TEST(Modules, GiveTheirMemoryBack) {
  const std::string text = head + ".visible .global .align 4 .b8 room[" + std::to_string(512 << 20) + "];\n" +
                           writer_of(5).substr(head.size());
  const auto free_now = [] { return hpe::device_info(0).memory_free; };
  { const module warm({text}); }
  const std::uint64_t before = free_now();
  for (int i = 0; i < 40; ++i) {  // unless modules free their memory, this needs more memory than the device has
    numbers result(1);
    module m({text});
    EXPECT_EQ(*m.variable<std::uint32_t>("room", 0), 0U);
    m.launch(0, "k", blocks_of(100, 64), result.data());
    m.unload();
    EXPECT_EQ(result[0], 5U);
  }
  EXPECT_GE(free_now(), before);
}

TEST(Modules, EndAfterTheLaunchesThatAreQueued) {
  hpeModule own = nullptr;
  hpeKernel slow = nullptr;
  ASSERT_TRUE(works(hpeModuleLoad(&own, PTX_LAUNCH_HOST_KERNELS)));
  ASSERT_TRUE(works(hpeModuleGetKernel(&slow, own, "increment")));
  numbers result(1);
  const increment_parameters p{result.data(), 1, 1, 100000};
  const hpeAccess access{result.data(), 4, HPE_INOUT};
  module m({writer_of(5)});
  ASSERT_TRUE(works(hpeLaunch(0, slow, nullptr, &p, sizeof p, &access, 1)));
  const hpeWork work = m.launch(0, "k", blocks_of(1, 1), result.data());
  m.unload();
  EXPECT_TRUE(works(hpeWorkWait(work, nullptr)));
  EXPECT_EQ(result[0], 5U);
}

TEST(Modules, AreNothingOnceTheyAreUnloaded) {
  module m({writer_of(5)});
  hpeModule const handle = m.handle();
  hpeKernel const kernel = m.kernel("k");
  m.unload();
  hpeKernel found = nullptr;
  EXPECT_TRUE(fails(hpeModuleGetKernel(&found, handle, "k"), HPE_ERROR_INVALID_ARGUMENT, {"unloaded"}));
  EXPECT_TRUE(fails(hpeModuleUnload(handle), HPE_ERROR_INVALID_ARGUMENT, {"unloaded"}));
  const hpeGrid shape = blocks_of(1, 1);
  void* nothing = nullptr;
  EXPECT_TRUE(fails(hpeLaunchGrid(0, kernel, &shape, &nothing, 8, nullptr, HPE_ALL, nullptr),
                    HPE_ERROR_INVALID_ARGUMENT, {"unloaded"}));
  hpeKernelInfo info{};
  EXPECT_TRUE(fails(hpeKernelGetInfo(kernel, &info), HPE_ERROR_INVALID_ARGUMENT, {"unloaded"}));
  EXPECT_TRUE(fails(hpeModuleUnload(nullptr), HPE_ERROR_INVALID_ARGUMENT));
}

TEST(Modules, OfSharedObjectsHaveNothingOfThis) {
  hpeModule own = nullptr;
  ASSERT_TRUE(works(hpeModuleLoad(&own, PTX_LAUNCH_HOST_KERNELS)));
  EXPECT_TRUE(fails(hpeModuleUnload(own), HPE_ERROR_NOT_SUPPORTED));
  void* address = nullptr;
  EXPECT_TRUE(fails(hpeModuleGetVariable(&address, nullptr, own, "x", 0), HPE_ERROR_NOT_SUPPORTED));
  hpeKernel kernel = nullptr;
  ASSERT_TRUE(works(hpeModuleGetKernel(&kernel, own, "fill")));
  hpeKernelInfo info{};
  EXPECT_TRUE(fails(hpeKernelGetInfo(kernel, &info), HPE_ERROR_NOT_SUPPORTED));
  const hpeGrid shape = blocks_of(1, 1);
  EXPECT_TRUE(fails(hpeLaunchGrid(0, kernel, &shape, nullptr, 0, nullptr, 0, nullptr), HPE_ERROR_NOT_SUPPORTED));
}

TEST(Modules, SayWhichKernelIsMissing) {
  const module m({writer_of(5)});
  hpeKernel found = nullptr;
  EXPECT_TRUE(fails(hpeModuleGetKernel(&found, m.handle(), "nobody"), HPE_ERROR_NOT_FOUND, {"nobody"}));
}

}  // namespace
