#!/usr/bin/env python3
"""Reads documents, a JSON object with the key "text" on each line, and writes their texts, an empty line after each, or with
--end-of-text <|endoftext|>, which a tokenizer that knows it reads as one token."""
import json
import sys

after = b"<|endoftext|>" if sys.argv[1:] == ["--end-of-text"] else b"\n\n"
for number, line in enumerate(sys.stdin.buffer, 1):
    if not line.strip():
        continue
    try:
        text = json.loads(line)["text"].strip()
    except (ValueError, KeyError, TypeError, AttributeError):
        sys.exit("document %d is no JSON object with a \"text\": damaged?" % number)
    sys.stdout.buffer.write(text.encode("utf-8", "replace") + after)
