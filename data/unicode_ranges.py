#!/usr/bin/env python3
"""Writes src/tokenizers/unicode_ranges.h: which characters are letters and which are numbers.

    python3 data/unicode_ranges.py > src/tokenizers/unicode_ranges.h

The Unicode version is that of the module unicodedata2 where it is installed (pip install unicodedata2==17.0.0), else of
Python's own unicodedata, which is as old as that Python.
"""
import textwrap

try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata


def run_lengths(general_category):
    """How many characters from U+0000 on are not of the category, then how many are, and so on, to the last one that is."""
    lengths, member = [0], False
    for code in range(0x110000):
        if (unicodedata.category(chr(code))[0] == general_category) != member:
            lengths.append(0)
            member = not member
        lengths[-1] += 1
    return lengths[: len(lengths) // 2 * 2]


def table(name, general_category):
    rows = textwrap.fill(", ".join(map(str, run_lengths(general_category))), 114, initial_indent="    ", subsequent_indent="    ")
    return "constexpr uint16_t %s[] = {\n%s};" % (name, rows)


print("""\
// Written by data/unicode_ranges.py: change that, not this.
#pragma once

#include <cstdint>

namespace petroglyph {

constexpr const char* UNICODE_VERSION = "%s";

// Run lengths: so many characters from U+0000 on are not in the category, then so many are, and so on.
// clang-format off
// The general categories Lu, Ll, Lt, Lm and Lo.
%s

// The general categories Nd, Nl and No.
%s
// clang-format on

}  // namespace petroglyph""" % (unicodedata.unidata_version, table("UNICODE_LETTERS", "L"), table("UNICODE_NUMBERS", "N")))
