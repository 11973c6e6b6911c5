// Finds the functions of calls.def when the library is loaded, so that signal handlers need no lookup. Earlier calls,
// from constructors of other libraries, look up their own function.

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
