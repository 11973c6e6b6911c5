#pragma once

namespace failing_memory {

/// From now on the k-th operator new of the calling thread throws std::bad_alloc, once.
void arm(unsigned k) noexcept;
/// Whether it has thrown. No later one does.
bool disarm() noexcept;

}  // namespace failing_memory
