#pragma once

#include <ucontext.h>

#include <cstdint>

namespace hpe::device::soft {

/// The address that the interrupted instruction uses in memory, by its encoding (Intel 64 and IA-32 Architectures
/// Software Developer's Manual, volume 2, chapter 2); 0 where it uses none. For accesses to addresses that cannot
/// exist, whose upper bits differ: the system does not say which they were. Safe in a signal handler.
[[nodiscard]] std::uintptr_t operand_address(const ucontext_t& at) noexcept;

}  // namespace hpe::device::soft
