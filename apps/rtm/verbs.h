#pragma once

namespace hpe::rtm {

/// `hpe rtm model` and `hpe rtm migrate`; argv[0] is the verb. Return the exit status; throw bad_input for a request or
/// a file that cannot be used, and std::runtime_error if a file cannot be written.
int model_survey(int argc, char** argv);
int migrate_survey(int argc, char** argv);

}  // namespace hpe::rtm
