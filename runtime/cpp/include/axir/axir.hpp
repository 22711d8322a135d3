// What users of a model see: arrays, options, failures.
#pragma once

// Raised when models that were emitted before no longer fit.
#define AXIR_RUNTIME_VERSION 2

#include "options.hpp"
#include "status.hpp"
#include "view.hpp"
