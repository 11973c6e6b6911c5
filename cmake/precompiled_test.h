// The headers that most tests include.
#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>

#include "precompiled.h"
