// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/recorded.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

namespace msfrs::sim::access {

namespace {

std::vector<std::string> Cells(const std::string &line)
{
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');)
        cells.push_back(cell);
    return cells;
}

} // namespace

std::vector<Arrival> ReadRecorded(const std::string &path, const std::vector<std::string> &classes,
                                  const std::vector<uint32_t> &users, const uint32_t servers)
{
    std::ifstream file(path);
    std::string line;
    if (!std::getline(file, line))
        throw ConfigError(path + " cannot be read: expected requests.csv of a field trial");
    std::map<std::string, size_t> column;
    for (const auto &name : Cells(line))
        column.emplace(name, column.size());

    std::vector<Arrival> arrivals;
    for (size_t number = 2; std::getline(file, line); ++number) {
        const auto cells = Cells(line);
        const auto cell = [&](const char *const name) {
            const auto found = column.find(name);
            if (found == column.end() || found->second >= cells.size())
                throw ConfigError(path + ":" + std::to_string(number) + ": there is no " + name);
            return cells[found->second];
        };
        const auto among = [&](const char *const name, const std::string &digits, const uint32_t most) {
            const auto value = std::strtoul(digits.c_str(), nullptr, 10);
            if (value < 1 || value > most)
                throw ConfigError(path + ":" + std::to_string(number) + ": " + name + " " + cell(name) +
                                  " is not one of " + std::to_string(most));
            return static_cast<uint32_t>(value - 1);
        };
        const auto cls = std::find(classes.begin(), classes.end(), cell("class"));
        if (cls == classes.end())
            throw ConfigError(path + ":" + std::to_string(number) + ": there is no class " + cell("class"));
        const auto index = static_cast<size_t>(cls - classes.begin());
        auto user = among("user", cell("user").substr(std::min(cls->size() + 1, cell("user").size())), users[index]);
        for (size_t before = 0; before < index; ++before)
            user += users[before];
        const double t = std::strtod(cell("t_start").c_str(), nullptr);
        const auto size = std::strtoll(cell("size").c_str(), nullptr, 10);
        if (!(t >= 0) || size <= 0)
            throw ConfigError(path + ":" + std::to_string(number) + ": t_start " + cell("t_start") + " and size " +
                              cell("size") + ": expected a time of at least 0 and a size above 0");
        arrivals.push_back({t, user, among("server", cell("server").substr(1), servers), size});
    }
    // In the order of arrival; the trial writes them in the order of completion.
    std::stable_sort(arrivals.begin(), arrivals.end(), [](const auto &a, const auto &b) { return a.t < b.t; });
    return arrivals;
}

} // namespace msfrs::sim::access
