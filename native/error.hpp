// Reports a failed system call as std::system_error that names the call.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace linkgauge {

// "mlock: Cannot allocate memory"
inline std::string describe(const std::string& call, int error) {
  return call + ": " + std::generic_category().message(error);
}

// Becomes an OSError in Python (module.cpp), whose message is describe(call, error).
[[noreturn]] inline void fail(const std::string& call, int error) {
  throw std::system_error(error, std::generic_category(), call);
}

}  // namespace linkgauge
