// ASAN: 1 in a build with the address sanitizer, which must be told about every stack and device memory that it
// did not allocate; else 0.
#pragma once

#if defined(__SANITIZE_ADDRESS__)  // g++
#define ASAN 1
#elif defined(__has_feature)  // clang++
#define ASAN __has_feature(address_sanitizer)
#else
#define ASAN 0
#endif
