// Small text files of the kernel. No iostreams: a process that loads several C++ runtimes, as one
// with vendor libraries may, can crash in their locales.
#pragma once

#include <charconv>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace linkgauge {

// Contents of a file; empty if it cannot be read.
std::string read_file(const std::string& path);

// Calls `see` with each line of a file, with its end, until it returns false.
void read_lines(const std::string& path, const std::function<bool(std::string_view)>& see);

// The number at the start of a text, after blanks; none if there is none.
inline std::optional<std::size_t> leading_number(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + first, text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

}  // namespace linkgauge
