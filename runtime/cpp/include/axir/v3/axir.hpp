// What users of a model see: arrays, options, failures, what a model is, what it does.
#pragma once

#include "description.hpp"
#include "options.hpp"
#include "profiling.hpp"
#include "status.hpp"
#include "view.hpp"
