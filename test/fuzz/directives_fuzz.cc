// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The options of the directives in squid.conf: the first byte names the directive, the rest is its line. Options are
/// refused with file and line, or their values are within the ranges of directives.toml, and what is printed of them
/// (mgr:config) is read as the same again.
#include "msfrs/DirectiveTable.h"
#include "plugin/loader.h"
#include "require.h"
#include "squid.h"

#include <cmath>
#include <iterator>
#include <sstream>

using namespace msfrs::squid;

namespace {

const Spec *const *const Directives[] = {Table::Link::All, Table::Window::All, Table::Class::All, Table::Queue::All};

/// Limits in another unit are rounded. A word, a name and a flag have no range.
bool InRange(const Spec &spec, const double number)
{
    return spec.max <= 0 || (spec.instead && number == 0) ||
           (number >= spec.min * (1 - 1e-9) && number <= spec.max * (1 + 1e-9));
}

Options Parse(const std::string &line, const Spec *const *const known)
{
    ConfigParser parser;
    ConfigParser::Begin(line.c_str());
    return Options(parser, Place(), known);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
    if (size == 0)
        return 0;
    const size_t directive = data[0] % (std::size(Directives) + 1);
    const std::string line(reinterpret_cast<const char *>(data) + 1, size - 1);
    try {
        if (directive == std::size(Directives)) { // the one with a value alone
            const auto &spec = Table::Quantum::Value;
            Require(InRange(spec, Number(spec, line, Place())));
            return 0;
        }
        const auto known = Directives[directive];
        const auto options = Parse(line, known);
        std::ostringstream printed, again;
        options.print(printed);
        const auto reread = Parse(printed.str(), known);
        reread.print(again);
        Require(printed.str() == again.str());
        for (auto spec = known; *spec; ++spec) {
            const auto number = options.number(**spec);
            Require(std::isfinite(number) && number == reread.number(**spec));
            Require(!options.has(**spec) || InRange(**spec, number));
        }
    } catch (const msfrs::ConfigError &refusal) {
        Require(std::string(refusal.what()).find("squid.conf:1: msfrs_test: ") == 0);
    }
    return 0;
}
