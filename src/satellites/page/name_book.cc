// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/name_book.h"

#include "satellites/page/ascii.h"
#include "satellites/page/scanner.h"
#include "satellites/page/utf8.h"

#include <algorithm>

namespace msfrs::page {

namespace {

constexpr std::string_view Blanks = " \t\r";

std::string_view Word(std::string_view &rest)
{
    rest = Trimmed(rest, Blanks);
    const auto word = rest.substr(0, rest.find_first_of(Blanks));
    rest.remove_prefix(word.size());
    return word;
}

/// A host name of a client; empty: it has none, or one that is refused.
std::string HostName(const std::string_view name)
{
    return name.size() <= NameBook::MostLength && std::all_of(name.begin(), name.end(), IsOfNames) ? std::string(name)
                                                                                                   : "";
}

bool IsNumber(const std::string_view text)
{
    return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

} // namespace

void NameBook::addNames(const std::string_view text)
{
    EachLine(text, [&](const Scanner &in) {
        auto line = in.rest().substr(0, in.rest().find('#'));
        const auto user = Word(line);
        const auto name = Trimmed(line, Blanks);
        if (!name.empty() && name.size() <= MostLength && names_.size() < Most && IsUtf8(name) &&
            std::none_of(name.begin(), name.end(), IsControl))
            names_.emplace(Lower(std::string(user)), name);
    });
}

void NameBook::lease(const std::string &address, Lease made)
{
    if (leases_.size() == Most && !leases_.count(address))
        return;
    if (!made.hardware.empty())
        leased_[made.hardware] = made.name;
    leases_[address] = std::move(made);
}

void NameBook::addLeases(const std::string_view text)
{
    std::string address; // of dhcpd's block
    Lease made;
    bool active = true;
    EachLine(text, [&](const Scanner &in) {
        auto line = in.rest();
        const auto first = Word(line);
        if (IsNumber(first)) { // dnsmasq: expiry, hardware address, address, name or *, client
            auto hardware = Lower(std::string(Word(line)));
            const std::string of(Word(line));
            lease(of, {HostName(Word(line)), std::move(hardware)});
        } else if (first == "lease") {
            address = Word(line);
            made = {};
            active = true;
        } else if (first == "}" && !address.empty()) {
            if (active)
                lease(address, std::move(made));
            else
                leases_.erase(address);
            address.clear();
        } else if (first == "client-hostname") {
            line = Trimmed(line, Blanks);
            const auto end = line.rfind('"');
            if (end != line.npos && end > 0 && line[0] == '"')
                made.name = HostName(line.substr(1, end - 1));
        } else if (first == "hardware") {
            Word(line);
            const auto hardware = Word(line);
            made.hardware = Lower(std::string(hardware.substr(0, hardware.find(';'))));
        } else if (first == "binding") {
            Word(line);
            active = Word(line) == "active;";
        }
    });
}

std::string NameBook::of(const std::string &user) const
{
    const auto lower = Lower(user);
    if (const auto named = names_.find(lower); named != names_.end())
        return named->second;
    if (const auto leased = leases_.find(user); leased != leases_.end())
        return leased->second.name;
    const auto leased = leased_.find(lower);
    return leased != leased_.end() ? leased->second : "";
}

std::string NameBook::hardwareOf(const std::string &address) const
{
    const auto leased = leases_.find(address);
    return leased != leases_.end() ? leased->second.hardware : "";
}

} // namespace msfrs::page
