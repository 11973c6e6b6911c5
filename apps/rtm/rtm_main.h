#pragma once

/// The command `hpe rtm`: seismic images by reverse time migration. argv[0] is the command's name; options follow.
/// Writes progress to standard error and results to files. Returns the exit status: 0 on success, 1 if the run failed,
/// 2 if the request is invalid.
int rtm_main(int argc, char** argv);
