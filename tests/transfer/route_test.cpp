#include "runtime/transfer/route.h"

#include <gtest/gtest.h>

namespace hpe::transfer {
namespace {

TEST(route, between_hosts_the_processor_copies) {
  for (const copy_endpoint a : {copy_endpoint::registered, copy_endpoint::pageable})
    for (const copy_endpoint b : {copy_endpoint::registered, copy_endpoint::pageable})
      EXPECT_EQ(choose_route(a, b, false, false), route::host);
}

TEST(route, registered_memory_and_a_device_need_one_copy) {
  EXPECT_EQ(choose_route(copy_endpoint::device, copy_endpoint::registered, false, false), route::direct);
  EXPECT_EQ(choose_route(copy_endpoint::registered, copy_endpoint::device, false, false), route::direct);
}

TEST(route, pageable_memory_is_staged) {
  EXPECT_EQ(choose_route(copy_endpoint::device, copy_endpoint::pageable, false, false), route::staged);
  EXPECT_EQ(choose_route(copy_endpoint::pageable, copy_endpoint::device, false, false), route::staged);
}

TEST(route, devices_copy_themselves_where_they_reach) {
  EXPECT_EQ(choose_route(copy_endpoint::device, copy_endpoint::device, true, true), route::direct);
  EXPECT_EQ(choose_route(copy_endpoint::device, copy_endpoint::device, true, false), route::direct);
  EXPECT_EQ(choose_route(copy_endpoint::device, copy_endpoint::device, false, true), route::peer);
  EXPECT_EQ(choose_route(copy_endpoint::device, copy_endpoint::device, false, false), route::peer_staged);
}

}  // namespace
}  // namespace hpe::transfer
