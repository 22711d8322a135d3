// The newest version of the headers, for code that is written for any model. Models include the
// version that they were written for: `axir::View` is `axir::v3::View`.
#pragma once

// Raised when the headers change. Models of different versions live in one program.
#define AXIR_RUNTIME_VERSION 3

#include "v3/axir.hpp"
