// Finds the next library's functions for all names in calls.def when this library is loaded, so that calls from signal
// handlers need no lookup. Earlier calls, from constructors of other libraries, each look up the function that they
// need.

#include "interpose/io/next.h"

namespace hpe::interpose {

namespace {

[[gnu::constructor]] void look_up() {
#define HPE_IO_TAKEN(name, ...) next::name.find();
#define HPE_IO_WATCHED(name, ...) next::name.find();
#define HPE_IO_LEFT(name, reason)
#include "interpose/io/calls.def"
#undef HPE_IO_TAKEN
#undef HPE_IO_WATCHED
#undef HPE_IO_LEFT
}

}  // namespace

}  // namespace hpe::interpose
