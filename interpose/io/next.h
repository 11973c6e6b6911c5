#pragma once

/// The functions of calls.def as the next library, usually libc, defines them: next::read calls the read that this
/// library interposes.

#include <aio.h>
#include <mqueue.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdio>
#include <ctime>

#include "runtime/os/next_function.h"

namespace hpe::interpose::next {

// Programs may call the functions of string.h before symbols can be looked up; therefore memory.cpp has its own
// pointers to libc's string.h functions.
#define HPE_IO_TAKEN(name, ...) inline constinit os::next_function<__VA_ARGS__> name(#name);
#define HPE_IO_WATCHED(name, ...) inline constinit os::next_function<__VA_ARGS__> name(#name);
#define HPE_IO_LEFT(name, reason)
#include "interpose/io/calls.def"
#undef HPE_IO_TAKEN
#undef HPE_IO_WATCHED
#undef HPE_IO_LEFT

}  // namespace hpe::interpose::next

#define HPE_INTERPOSE extern "C" __attribute__((visibility("default")))
