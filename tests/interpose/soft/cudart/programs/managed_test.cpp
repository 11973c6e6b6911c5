// Managed variables on one device and on several devices.
#include <gtest/gtest.h>

#include <string>

#include "tests/interpose/soft/cudart/programs/soft_run.h"

namespace {

TEST(ManagedVariables, AreOneForTheHostAndAllDevices) {
  for (const int devices : {1, 2, 3}) {
    const outcome o = soft_run(cuda_program("managed_devices"), devices);
    EXPECT_EQ(exit_status(o), 0) << o.text;
    EXPECT_EQ(o.text, "managed variables on " + std::to_string(devices) + " devices: right\n");
  }
}

}  // namespace
