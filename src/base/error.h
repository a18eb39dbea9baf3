// Errors that a user can cause. Thrown where they are found, printed once by main as "program: sentence".
#pragma once

#include <stdexcept>
#include <string>

namespace petroglyph {

// A bad file, value or machine: exit status 1.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A valid file of a kind that is not supported: a conversion may continue without it. Never thrown for a damaged or
// unreadable file.
struct Unsupported : Error {
  using Error::Error;
};

// A bad command line: exit status 2.
struct UsageError : Error {
  using Error::Error;
};

}  // namespace petroglyph
