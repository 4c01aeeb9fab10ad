// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfrs-why: gives msfrs-page's answer for a name, from pages of the manager that `msfrsctl why` has fetched.
#include "satellites/page/figures.h"

#include <cstdio>
#include <iostream>
#include <sstream>

namespace msfrs::page {

namespace {

constexpr const char *Usage = R"(Usage: msfrs-why NAME | --overall
Explains, as JSON, why a user, host or transaction is slow, like /user.json of msfrs-page (docs/user/page.md). msfrsctl
why runs it. With --overall, the verdict on the whole gateway, as msfrsctl status has it.

Standard input has sections, each after a line with its kind, a time (seconds of a monotonic clock) and its length:

  metrics|report|users SECONDS BYTES     a page of Squid's cache manager, and when it was requested
  silent SECONDS BYTES                   ADDRESS:PORT at which Squid does not answer
  faults SECONDS BYTES                   lines of msfrsctl/faults.py
)";

/// Reads the sections. \returns the reason for missing figures; empty: success \throws PageError
std::string Take(Figures &figures, std::istream &in)
{
    std::string trouble;
    for (std::string head; std::getline(in, head);) {
        std::istringstream words(head);
        std::string kind;
        double seconds = 0;
        size_t bytes = 0;
        if (!(words >> kind >> seconds >> bytes) || bytes > (64u << 20))
            throw PageError("'" + head + "' is no line such as: metrics 12.5 1000");
        std::string text(bytes, '\0');
        if (!in.read(text.data(), static_cast<std::streamsize>(bytes)))
            throw PageError(kind + " ends too early");
        if (kind == "metrics")
            figures.takeMetrics(text, seconds, 0);
        else if (kind == "report")
            figures.takeReport(text);
        else if (kind == "users")
            figures.takeUsers(text, seconds, 0);
        else if (kind == "faults")
            figures.takeFaults(report::ReadFaults(text));
        else if (kind == "silent")
            trouble = SilentText(text);
        else
            throw PageError("'" + kind + "' is not one of: metrics, report, users, faults, silent");
    }
    return trouble;
}

} // namespace

} // namespace msfrs::page

int main(const int argc, char **const argv)
{
    using namespace msfrs::page;
    if (argc != 2) {
        std::fputs(Usage, stderr);
        return 2;
    }
    try {
        Figures figures;
        const auto trouble = Take(figures, std::cin);
        const std::string name = argv[1];
        std::cout << (name == "--overall" ? figures.overallJson(trouble) : figures.userJson(name, trouble)) << '\n';
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "msfrs-why: %s\n", error.what());
        return 2;
    }
}
