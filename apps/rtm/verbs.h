#pragma once

#include "apps/rtm/rtm_team.h"

namespace hpe::rtm {

/// Returns the value of --parts: the number of slabs of a grid, for the team. Throws bad_input for an invalid command
/// line.
int parts_of(int argc, char** argv);

/// `hpe rtm model` and `hpe rtm migrate`; argv[0] is the verb. All processes of a team call them with the same
/// arguments; the first process reads and writes the files of the run and reports. They return the exit status; they
/// throw bad_input for a request or a file that cannot be used, and std::runtime_error if a file cannot be written.
int model_survey(int argc, char** argv, team& with);
int migrate_survey(int argc, char** argv, team& with);

}  // namespace hpe::rtm
