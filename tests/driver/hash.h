// FNV-1a, by which machine code names the library of its kernel.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

inline uint64_t hash(const unsigned char* bytes, size_t size) {
    uint64_t value = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; ++i) {
        value = (value ^ bytes[i]) * 0x100000001b3;
    }
    return value;
}

inline std::string hex(uint64_t value) {
    char text[17];
    snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
    return text;
}
