#pragma once

namespace hpe {
struct options;
}

namespace hpe::cuda_hooks {

/// Makes hpe check the program (HPE_CHECK) on GPUs until its end, and report the findings then: registers a kind of
/// memory that observes the program's calls. Throws HPE_ERROR_NOT_SUPPORTED with the reason if the options contain
/// something that cannot be checked, and HPE_ERROR_INVALID_ARGUMENT for a wrong file of HPE_CHECK_IGNORE.
void check_program(const options& chosen);

}  // namespace hpe::cuda_hooks
