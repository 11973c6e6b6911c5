#pragma once

/// The command `hpe predict`: how fast an application would be on more devices or on another machine. argv[0] is the
/// command's name; options follow. Returns the exit status: 0 on success, 1 if a file could not be written, 2 for an
/// invalid request, specification or profile.
int predict_main(int argc, char** argv);
