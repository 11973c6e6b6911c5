#include "runtime/check/order.h"

#include <gtest/gtest.h>

using namespace hpe::check;

TEST(Order, ALineRunsItsWorkInSequence) {
  work_order order;
  const std::uint32_t line = order.add_line();
  const past_ptr a = order.queue(line), b = order.queue(line);
  EXPECT_TRUE(order.is_ordered(a->self, *b));
  EXPECT_FALSE(order.is_ordered(b->self, *a));
  EXPECT_FALSE(order.is_ordered(a->self, *a));
}

TEST(Order, TwoLinesHaveNoOrderWithoutAnEvent) {
  work_order order;
  const std::uint32_t first = order.add_line(), second = order.add_line();
  const past_ptr a = order.queue(first), b = order.queue(second);
  EXPECT_FALSE(order.is_ordered(a->self, *b));
  const past_ptr c = order.queue(second, {{a}});
  EXPECT_TRUE(order.is_ordered(a->self, *c));
  EXPECT_TRUE(order.is_ordered(a->self, *order.queue(second)));
}

TEST(Order, AnEventOrdersOnlyTheWorkBeforeIt) {
  work_order order;
  const std::uint32_t first = order.add_line(), second = order.add_line();
  const past_ptr event = order.queue(first), behind = order.queue(first);
  const past_ptr waits = order.queue(second, {{event}});
  EXPECT_TRUE(order.is_ordered(event->self, *waits));
  EXPECT_FALSE(order.is_ordered(behind->self, *waits));
}

TEST(Order, OrderPassesThroughAThirdLine) {
  work_order order;
  const std::uint32_t first = order.add_line(), second = order.add_line(), third = order.add_line();
  const past_ptr a = order.queue(first), b = order.queue(second, {{a}}), c = order.queue(third, {{b}});
  EXPECT_TRUE(order.is_ordered(a->self, *c));
}

TEST(Order, WorkThatIsQueuedAfterAWaitOfTheHostIsOrdered) {
  work_order order;
  const std::uint32_t first = order.add_line(), second = order.add_line();
  const past_ptr a = order.queue(first), early = order.queue(second);
  order.wait(a);
  EXPECT_TRUE(order.has_waited(a->self));
  EXPECT_FALSE(order.has_waited(early->self));
  const past_ptr later = order.queue(second), b = order.queue(first), other = order.queue(second);
  EXPECT_FALSE(order.is_ordered(a->self, *early)) << "work that was queued before the wait is not ordered by it";
  EXPECT_TRUE(order.is_ordered(a->self, *later));
  EXPECT_FALSE(order.is_ordered(b->self, *other));
}

TEST(Order, AWaitCoversWhatTheWorkWaitedFor) {
  work_order order;
  const std::uint32_t first = order.add_line(), second = order.add_line(), third = order.add_line();
  const past_ptr a = order.queue(first), b = order.queue(second, {{a}});
  order.wait(b);
  EXPECT_TRUE(order.is_ordered(a->self, *order.queue(third)));
}

TEST(Order, ClocksOfEndedLinesDoNotGrow) {
  work_order order;
  past_ptr last;
  for (int i = 0; i < 1000; ++i) {
    last = order.queue(order.add_line());
    order.wait(last);
  }
  EXPECT_EQ(order.queue(order.add_line(), {{last}})->further.size(), 1U);
}

TEST(Order, AWaitForAValueOrdersTheWorkBeforeItsWriter) {
  work_order order;
  const std::uint32_t first = order.add_line(), second = order.add_line();
  const past_ptr before = order.queue(first), writer = order.queue(first), behind = order.queue(first);
  const past_ptr waits = order.queue(second, {}, false, true), early = order.queue(second);
  EXPECT_TRUE(order.is_ordered(behind->self, *early)) << "which work writes the value is not known yet";
  order.end_value_wait(*waits, {{writer}});
  const past_ptr late = order.queue(second);
  for (const past_ptr& each : {early, late}) {
    EXPECT_TRUE(order.is_ordered(before->self, *each));
    EXPECT_TRUE(order.is_ordered(writer->self, *each));
    EXPECT_FALSE(order.is_ordered(behind->self, *each));
  }
  order.wait(early);
  EXPECT_TRUE(order.has_waited(writer->self));
  EXPECT_FALSE(order.has_waited(behind->self));
}

TEST(Order, AWaitForAValueOfAnUnknownWriterOrdersAllWork) {
  work_order order;
  const std::uint32_t first = order.add_line(), second = order.add_line(), third = order.add_line();
  const past_ptr a = order.queue(first), waits = order.queue(second, {}, false, true), early = order.queue(second);
  order.end_value_wait(*waits, {});
  const past_ptr late = order.queue(second), unknown_too = order.queue(third, {}, false, true);
  order.end_value_wait(*unknown_too, {{late}});
  for (const past_ptr& each : {early, late, unknown_too}) EXPECT_TRUE(order.is_ordered(a->self, *each));
}

// A chain of waits, of which all are queued before the first one ends.
TEST(Order, WaitsForValuesPassOnTheOrder) {
  work_order order;
  const std::uint32_t lines[3] = {order.add_line(), order.add_line(), order.add_line()};
  const past_ptr a = order.queue(lines[0]), first = order.queue(lines[1], {}, false, true),
                 writer = order.queue(lines[1]), second = order.queue(lines[2], {}, false, true),
                 last = order.queue(lines[2]), other = order.queue(lines[0]);
  order.end_value_wait(*first, {{a}});
  order.end_value_wait(*second, {{writer}});
  EXPECT_TRUE(order.is_ordered(a->self, *last));
  EXPECT_FALSE(order.is_ordered(other->self, *last));
}

TEST(Order, ABeginWaitsForTheEarlierWorkOfItsLine) {
  work_order order;
  const std::uint32_t first = order.add_line(), second = order.add_line();
  const past_ptr before = order.queue(first), begun = order.queue(first);
  order.wait_for_begin(*begun);
  EXPECT_TRUE(order.has_waited(before->self));
  EXPECT_FALSE(order.has_waited(begun->self));
  const past_ptr other = order.queue(second);
  EXPECT_TRUE(order.is_ordered(before->self, *other));
  EXPECT_FALSE(order.is_ordered(begun->self, *other));
}
