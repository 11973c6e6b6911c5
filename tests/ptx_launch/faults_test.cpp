// Kernels that fail on soft devices: the program gets errors, and devices and data are not lost.

#include <csignal>
#include <cstdlib>

#include "tests/failure/child.h"
#include "tests/ptx_launch/support.h"

namespace {

using namespace ptx_launch;
using numbers = hpe::array<std::uint32_t>;

class Faults : public random_numbers {
 protected:
  const module m;
  numbers witness{5000};

  Faults() {
    for (std::uint32_t i = 0; i < witness.size(); ++i) witness[i] = i;
  }

  // Expects that the work failed with this fault, that the fault is reported only once, and that the device works and
  // its data is unchanged.
  void expect_fault(hpeWork work, hpeFault wanted, std::initializer_list<std::string> words) {
    hpeFault fault = HPE_FAULT_NONE;
    EXPECT_TRUE(fails(hpeWorkWait(work, &fault), HPE_ERROR_LAUNCH_FAILED, words));
    EXPECT_EQ(fault, wanted);
    EXPECT_TRUE(works(hpeSynchronize())) << "the fault is reported a second time";
    const hpeWork next =
        m.launch(0, "add_number", blocks_of(50, 100), witness.data(), static_cast<std::uint32_t>(witness.size()), 1U);
    fault = HPE_FAULT_OTHER;
    EXPECT_TRUE(works(hpeWorkWait(next, &fault)));
    EXPECT_EQ(fault, HPE_FAULT_NONE);
    ++launches_;
    for (std::uint32_t i = 0; i < witness.size(); ++i) ASSERT_EQ(witness[i], i + launches_);
  }

  static std::string words_for(std::uintptr_t address) {
    char text[24];
    std::snprintf(text, sizeof text, "%#lx", address);
    return text;
  }

 private:
  std::uint32_t launches_ = 0;
};

TEST_F(Faults, NameKernelBlockThreadAndAddress) {
  const auto at = [&](std::uintptr_t address) {
    const std::uint32_t block = random() % 5, thread = random() % 64;
    expect_fault(m.launch(0, "write_at", blocks_of(5, 64), address, block, thread), HPE_FAULT_ADDRESS,
                 {"device 0", "write_at", "thread (" + std::to_string(thread) + ", 0, 0)",
                  "block (" + std::to_string(block) + ", 0, 0)", words_for(address)});
  };
  at(0x10);
  at(0x123456780);
  at(0xdead000000000000);  // not a canonical address
  at(0x7000000000000000);
  const auto past = reinterpret_cast<std::uintptr_t>(witness.data());
  at(past + (std::uintptr_t{1} << 38));  // far past the allocation
  numbers large(std::size_t{1} << 20);
  at(reinterpret_cast<std::uintptr_t>(large.data() + large.size()));
}

// The device must not access ordinary memory of the program, at any address.
TEST_F(Faults, ComeFromOrdinaryMemory) {
  std::vector<std::uint32_t> small(4, 77), large(std::size_t{1} << 24, 77);
  std::uint32_t on_stack = 77;
  static std::uint32_t fixed = 77;
  for (std::uint32_t* const place : {small.data(), large.data() + 1000, &on_stack, &fixed}) {
    expect_fault(m.launch(0, "write_at", blocks_of(1, 32), place, 0U, 3U), HPE_FAULT_ADDRESS,
                 {words_for(reinterpret_cast<std::uintptr_t>(place))});
    EXPECT_EQ(*place, 77U);
  }
}

// Accesses slightly before the first allocation hit a guard area. This test uses an address below the guard area.
TEST_F(Faults, FarBelowTheFirstAllocation) {
  const std::uintptr_t base = reinterpret_cast<std::uintptr_t>(witness.data()) >> 40 << 40, below = base - (1 << 20);
  expect_fault(m.launch(0, "write_at", blocks_of(1, 1), below, 0U, 0U), HPE_FAULT_ADDRESS, {words_for(below)});
}

TEST_F(Faults, ComeFromFreedMemory) {
  constexpr std::size_t size = std::size_t{16} << 20;
  void* gone = nullptr;
  ASSERT_TRUE(works(hpeMalloc(&gone, size)));
  ASSERT_TRUE(works(hpeFree(gone)));
  expect_fault(m.launch(0, "write_at", blocks_of(1, 1), gone, 0U, 0U), HPE_FAULT_ADDRESS, {"write_at"});
}

TEST_F(Faults, OfTraps) {
  expect_fault(m.launch(0, "trap_at", blocks_of(2, 64), 33U), HPE_FAULT_TRAP,
               {"trap_at", "thread (33, 0, 0)", "block (0, 0, 0)"});
}

TEST_F(Faults, OfAssertions) {
  testing::internal::CaptureStderr();
  const hpeWork work = m.launch(0, "assert_less", blocks_of(1, 64), 40U);
  expect_fault(work, HPE_FAULT_ASSERT, {"assert_less", "thread (40, 0, 0)", "threadIdx.x < limit"});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("kernels.cu:"), std::string::npos) << text;
  EXPECT_NE(text.find("block: [0,0,0], thread: [40,0,0] Assertion `threadIdx.x < limit` failed.\n"), std::string::npos)
      << text;
}

TEST_F(Faults, OfMisalignedAddresses) {
  const auto odd = reinterpret_cast<std::uintptr_t>(witness.data()) + 2;
  const std::uint32_t block = random() % 5, thread = random() % 64;
  expect_fault(m.launch(0, "write_at", blocks_of(5, 64), odd, block, thread), HPE_FAULT_MISALIGNED,
               {"write_at", "thread (" + std::to_string(thread) + ", 0, 0)",
                "block (" + std::to_string(block) + ", 0, 0)", words_for(odd)});
}

TEST_F(Faults, OfEndlessRecursion) {
  numbers stop(1), result(1);
  stop[0] = 5;
  EXPECT_TRUE(works(hpeWorkWait(m.launch(0, "recurse", blocks_of(1, 1), stop.data(), result.data()), nullptr)));
  stop[0] = ~0U;
  expect_fault(m.launch(0, "recurse", blocks_of(1, 1), stop.data(), result.data()), HPE_FAULT_STACK, {"recurse"});
}

TEST_F(Faults, OfPointersToNoFunction) {
  numbers result(1);
  expect_fault(m.launch(0, "call_pointer", blocks_of(1, 1), std::uintptr_t{0x1234567}, result.data()),
               HPE_FAULT_INSTRUCTION, {"call_pointer", "0x1234567"});
}

TEST_F(Faults, OfThreadsThatWaitForEver) {
  numbers flag(1);
  expect_fault(m.launch(0, "wait_for_one_another", blocks_of(1, 64), flag.data()), HPE_FAULT_DEADLOCK,
               {"wait_for_one_another"});
  EXPECT_EQ(flag[0], 0U);
}

TEST_F(Faults, InFunctionsOfTheSystem) {
  const auto text = std::uintptr_t{0x4560};
  expect_fault(m.launch(0, "print_line", blocks_of(1, 1), 1, text), HPE_FAULT_ADDRESS, {"print_line", "0x4560"});
}

TEST_F(Faults, InCooperativeLaunches) {
  hpeGrid shape = blocks_of(3, 32);
  shape.cooperative = 1;
  expect_fault(m.launch(0, "write_at", shape, std::uintptr_t{0x40}, 2U, 1U), HPE_FAULT_ADDRESS,
               {"thread (1, 0, 0)", "block (2, 0, 0)"});
}

// If a program does not query the status of its work, hpeSynchronize reports each failure once.
TEST_F(Faults, AreToldBySynchronizeElse) {
  const hpeWork first = m.launch(0, "write_at", blocks_of(1, 1), std::uintptr_t{0x40}, 0U, 0U);
  m.launch(0, "trap_at", blocks_of(1, 64), 3U);
  EXPECT_TRUE(fails(hpeWorkWait(first, nullptr), HPE_ERROR_LAUNCH_FAILED, {"write_at"}));
  EXPECT_TRUE(fails(hpeSynchronize(), HPE_ERROR_LAUNCH_FAILED, {"trap_at"}));
  EXPECT_TRUE(works(hpeSynchronize()));
  EXPECT_TRUE(fails(hpeWorkWait(first, nullptr), HPE_ERROR_LAUNCH_FAILED, {"write_at"})) << "asked for again";
}

TEST(LostDevicesDeathTest, FailTheirLaunches) {
  using failure_test::check;
  const auto ended = failure_test::run_child([] {
    const module m;
    numbers stop(1, hpe::placement::on_host()), result(1, hpe::placement::on_device(1));
    const hpeWork work = m.launch_on({hpe::out(result)}, 1, "spin", blocks_of(1, 1), stop.data(), result.data());
    failure_test::kill_device(1);
    check(bool(fails(hpeWorkWait(work, nullptr), HPE_ERROR_DEVICE_LOST, {"device 1"})), "waiting");
    check(hpeSynchronize() == HPE_SUCCESS, "the fault was reported a second time");
    hpeWork next{};
    check(bool(fails(m.try_launch(&next, 1, "trap_at", blocks_of(1, 1), 0U), HPE_ERROR_DEVICE_LOST, {"device 1"})),
          "launching");
    numbers values(100, hpe::placement::on_device(0));
    m.launch_on({hpe::inout(values)}, 0, "add_number", blocks_of(1, 100), values.data(), 100U, 3U);
    check(values[99] == 3, "another device");
    const module after;  // loaded while the devices have work
    void* address = nullptr;
    check(bool(fails(hpeModuleGetVariable(&address, nullptr, after.handle(), "counter", 1), HPE_ERROR_DEVICE_LOST)),
          "a variable");
    check(hpeModuleGetVariable(&address, nullptr, after.handle(), "counter", 2) == HPE_SUCCESS, "another variable");
    check(!testing::Test::HasFailure(), "an expectation");
  });
  EXPECT_TRUE(ended.well()) << ended;
}

}  // namespace
