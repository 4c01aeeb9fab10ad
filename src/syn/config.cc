// SPDX-License-Identifier: GPL-2.0-or-later
#include "syn/config.h"

namespace msfrs::syn {

namespace {

std::string_view Trimmed(std::string_view text)
{
    constexpr const char *Blanks = " \t\r";
    text.remove_prefix(std::min(text.find_first_not_of(Blanks), text.size()));
    return text.substr(0, text.find_last_not_of(Blanks) + 1);
}

/// A number of 32 bits, decimal or 0x and hexadecimal.
std::optional<uint32_t> Bits(const std::string_view text)
{
    if (text.substr(0, 2) != "0x")
        return WholeNumber(text, UINT32_MAX);
    const auto digits = text.substr(2);
    if (digits.empty() || digits.size() > 8 || digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos)
        return {};
    return static_cast<uint32_t>(std::stoul(std::string(digits), nullptr, 16));
}

MarkBits MarkOf(const std::string_view text)
{
    const auto slash = std::min(text.find('/'), text.size());
    const auto value = Bits(text.substr(0, slash));
    const auto mask = slash < text.size() ? Bits(text.substr(slash + 1)) : std::nullopt;
    if (!value || !mask || *value == 0 || (*value & *mask) != *value)
        throw RuleError("must be VALUE/MASK, 32 bits, VALUE not 0 and within MASK, for example 0x200/0x200");
    return {*value, *mask};
}

void Set(Config &config, const std::string_view option, const std::string_view value, const std::string &where)
{
    if (option == "mode") {
        config.transparent = value == "tproxy";
    } else if (option == "syn-queue") {
        config.queue = WholeNumber(value, 65535);
        if (!config.queue && value != "none")
            throw RuleError("must be a number from 0 to 65535, or none");
    } else if (option == "syn-mark") {
        config.bits = MarkOf(value);
    } else if (option == "squid-user") {
        if (!GoodName(value))
            throw RuleError("must be the name of a user");
        config.user = {std::string(value), where};
    }
}

} // namespace

Config ReadConfig(std::istream &in, const std::string &file)
{
    Config config;
    Lines lines(in, file);
    for (std::string_view line; lines.next(line);) {
        const auto equals = std::min(line.find('='), line.size());
        const auto option = Trimmed(line.substr(0, equals));
        const auto value = Trimmed(line.substr(std::min(equals + 1, line.size())));
        try {
            Set(config, option, value, lines.where());
        } catch (const RuleError &error) {
            throw RuleError(lines.where() + ": " + std::string(option) + " '" + Shown(value) + "' " + error.what());
        }
    }
    return config;
}

Config ReadConfig(const std::string &path)
{
    auto file = OpenFile(path);
    return ReadConfig(file, path);
}

} // namespace msfrs::syn
