// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The message of a gateway to the others of its link.
///
/// Format, version 2; all numbers little-endian, a real number is the bits of an IEEE double:
///
///     8 bytes   "MSFRSGW" and the version, a byte
///     2, 2      classes (at most MostClasses), users (at most MostUsers)
///     6 x 8     life, number, config, places, waiting, queued
///     8         demand (real)
///     3 x 8     received, own, metered
///     3 x 8     limit, rate, utilisation (real)
///     8         queue
///     24 each   a class: key, served, demand (real)
///     20 each   a user: key, bytes, waiting (2), items (2)
///
/// The content was written by another machine: DecodeMessage() refuses messages of a wrong length and values outside
/// the ranges given here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msfrs::share {

/// Service and demand of one class, over the parties of a gateway.
struct ClassSums {
    uint64_t key = 0;    ///< ledger::ClassKey(), not 0
    uint64_t served = 0; ///< bytes charged, increasing
    double demand = 0;   ///< 0 to MostDemand
};

/// Bytes charged to a user at a gateway.
struct UserSums {
    uint64_t key = 0;     ///< ledger::UserKey(), not 0
    uint64_t bytes = 0;   ///< increasing, from an arbitrary start
    uint16_t waiting = 0; ///< requests waiting for their first service
    uint16_t items = 0;   ///< requests with work; 0: none there now
};

/// Sums over the parties of a gateway.
struct Sums {
    uint64_t life = 0;    ///< differs with each start of the gateway's daemon, which resets the counts
    uint64_t number = 0;  ///< of the message, increasing
    uint64_t config = 0;  ///< of Squid's configuration, for reports
    uint64_t places = 0, waiting = 0, queued = 0; ///< up to MostPlaces, MostWaiting, MostWaiting
    double demand = 0;    ///< 0 to MostDemand
    uint64_t received = 0; ///< bytes that the link has carried to this gateway, increasing
    uint64_t own = 0;      ///< the part of them that were responses, increasing
    bool metered = false;  ///< whether an interface counted them
    double limit = 1;      ///< W+, 1 to MostPlaces
    double rate = 0;       ///< C in bit/s, 0 (unknown) to MostRate
    double utilisation = 0; ///< U, 0 to MostUtilisation
    int64_t queue = 0;     ///< q*, ns, 0 (unknown) to MostQueue
    std::vector<ClassSums> classes;
    std::vector<UserSums> users; ///< users with recent service, most first
};

/// A longer list is cut when it is sent. Receivers ignore a message beyond any of these bounds, and log it.
constexpr size_t MostClasses = 32, MostUsers = 512, MostMessage = 124 + MostClasses * 24 + MostUsers * 20; ///< bytes
constexpr uint64_t MostPlaces = 1 << 20, MostWaiting = uint64_t{1} << 32;
constexpr int64_t MostQueue = 3'600'000'000'000; ///< ns
constexpr double MostDemand = 1e12, MostRate = 1e13, MostUtilisation = 1e3;

/// \param sums within its ranges; surplus classes or users are left out
std::string EncodeMessage(const Sums &sums);

/// \returns nothing if the message is invalid, with the reason in `why`, in characters that a terminal can show
std::optional<Sums> DecodeMessage(std::string_view text, std::string &why);

} // namespace msfrs::share
