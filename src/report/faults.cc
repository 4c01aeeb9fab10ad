// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/faults.h"

#include <algorithm>
#include <fstream>

namespace msfrs::report {

std::vector<Fault> ReadFaults(std::string_view text)
{
    std::vector<Fault> found;
    while (!text.empty()) {
        const auto line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        const auto tab = line.find('\t');
        if (tab == line.npos || tab == 0 || tab + 1 == line.size())
            continue;
        std::string said(line.substr(tab + 1));
        std::replace_if(said.begin(), said.end(), [](const char c) { return c >= 0 && c < ' '; }, ' ');
        found.push_back({std::string(line.substr(0, tab)), std::move(said)});
    }
    return found;
}

std::vector<Fault> FaultsOf(const std::string &path)
{
    std::string text(64 << 10, '\0');
    std::ifstream in(path);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(std::max<std::streamsize>(0, in.gcount())));
    return ReadFaults(text);
}

} // namespace msfrs::report
