// What users of a model see: arrays, options, failures, what a model is, what it does.
#pragma once

#include "description.hpp"
#include "options.hpp"
#include "profiling.hpp"
#include "status.hpp"
#include "view.hpp"

// Compilers take files of equal text and time for one file, and read it once. So each header names
// its version.
namespace axir {
inline namespace v3 {}
}  // namespace axir
