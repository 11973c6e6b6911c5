#pragma once

#include "interpose/soft/cudart/device/failure.h"

namespace hpe::cudart::testing {

/// Returns the error that a call throws; cudaSuccess if it throws nothing.
template <class Call>
cudaError_t code_of(const Call& call) {
  try {
    call();
    return cudaSuccess;
  } catch (const failure& caught) {
    return caught.code();
  }
}

}  // namespace hpe::cudart::testing
