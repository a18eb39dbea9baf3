#!/usr/bin/env python3
"""Writes unicode_ranges.h: which characters are letters and which are numbers.

    python3 src/tokenizers/unicode_ranges.py > src/tokenizers/unicode_ranges.h

The Unicode version is that of the module unicodedata2 where it is installed (pip install unicodedata2==17.0.0), else of
Python's own unicodedata, which is as old as that Python.
"""
try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

RANGES_IN_A_ROW = 5


def ranges(general_category):
    """The first and last characters of every run whose category begins with this letter."""
    found = []
    for code in range(0x110000):
        if unicodedata.category(chr(code))[0] != general_category:
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def table(name, general_category):
    pairs = ["{0x%04X, 0x%04X}" % tuple(pair) for pair in ranges(general_category)]
    rows = [", ".join(pairs[i:i + RANGES_IN_A_ROW]) for i in range(0, len(pairs), RANGES_IN_A_ROW)]
    return "constexpr UnicodeRange %s[] = {\n    %s};" % (name, ",\n    ".join(rows))


print("""\
// Written by unicode_ranges.py: change that, not this.
#pragma once

#include <cstdint>

namespace petroglyph {

constexpr const char* UNICODE_VERSION = "%s";

struct UnicodeRange {
  uint32_t first, last;
};

// clang-format off
// The general categories Lu, Ll, Lt, Lm and Lo, ascending.
%s

// The general categories Nd, Nl and No, ascending.
%s
// clang-format on

}  // namespace petroglyph""" % (unicodedata.unidata_version, table("UNICODE_LETTERS", "L"), table("UNICODE_NUMBERS", "N")))
