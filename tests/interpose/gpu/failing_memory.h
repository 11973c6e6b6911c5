#pragma once

namespace failing_memory {

/// Makes the k-th call of operator new by the calling thread, counted from now on, throw std::bad_alloc.
void arm(unsigned k) noexcept;
/// Returns whether that call has thrown; later calls do not throw.
bool disarm() noexcept;

}  // namespace failing_memory
