#pragma once

/// The command `hpe rtm`: seismic images by reverse time migration. argv[0] is the command's name; options follow.
/// Writes progress to standard error and results to files. Returns the exit status: 0, 1 when the run
/// failed, 2 when what was asked for is not possible.
int rtm_main(int argc, char** argv);
