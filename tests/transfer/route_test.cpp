#include "runtime/transfer/route.h"

#include <gtest/gtest.h>

namespace hpe::transfer {
namespace {

TEST(route, between_hosts_the_processor_copies) {
  for (const place a : {place::registered, place::pageable})
    for (const place b : {place::registered, place::pageable}) EXPECT_EQ(choose_route(a, b, false, false), route::host);
}

TEST(route, registered_memory_and_a_device_need_one_copy) {
  EXPECT_EQ(choose_route(place::device, place::registered, false, false), route::direct);
  EXPECT_EQ(choose_route(place::registered, place::device, false, false), route::direct);
}

TEST(route, pageable_memory_is_staged) {
  EXPECT_EQ(choose_route(place::device, place::pageable, false, false), route::staged);
  EXPECT_EQ(choose_route(place::pageable, place::device, false, false), route::staged);
}

TEST(route, devices_copy_themselves_where_they_reach) {
  EXPECT_EQ(choose_route(place::device, place::device, true, true), route::direct);
  EXPECT_EQ(choose_route(place::device, place::device, true, false), route::direct);
  EXPECT_EQ(choose_route(place::device, place::device, false, true), route::peer);
  EXPECT_EQ(choose_route(place::device, place::device, false, false), route::peer_staged);
}

}  // namespace
}  // namespace hpe::transfer
