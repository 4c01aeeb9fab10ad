// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Quotas::save() and load(). One entry a line:
///
///     msfrs-quota 1
///     class NAME PERIOD NUMBER
///     BYTES USER
///     end LINES
///
/// A class is followed by its users. NUMBER is the number of the period. In USER everything but visible ASCII is
/// written as %XX, and so is %. LINES counts the lines before the last, which reveals a truncated text.
#include "quota/quotas.h"

#include <charconv>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

namespace msfrs {

namespace {

constexpr std::string_view Title = "msfrs-quota 1";
constexpr std::string_view Digits = "0123456789ABCDEF";
constexpr auto MostBytes = static_cast<int64_t>(ledger::MostQuotaBytes);

std::string Escaped(const std::string &name)
{
    std::string text;
    for (const unsigned char c : name) {
        if (c > ' ' && c < 0x7F && c != '%')
            text += static_cast<char>(c);
        else
            text += {'%', Digits[c / 16], Digits[c % 16]};
    }
    return text;
}

std::optional<std::string> Unescaped(const std::string_view text)
{
    std::string name;
    for (size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '%') {
            name += text[at];
            continue;
        }
        const auto high = at + 2 < text.size() ? Digits.find(text[at + 1]) : std::string_view::npos;
        const auto low = at + 2 < text.size() ? Digits.find(text[at + 2]) : std::string_view::npos;
        if (high == std::string_view::npos || low == std::string_view::npos)
            return std::nullopt;
        name += static_cast<char>(high * 16 + low);
        at += 2;
    }
    return name;
}

std::optional<int64_t> Whole(const std::string_view text)
{
    int64_t n = 0;
    const auto end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, n);
    return parsed.ec == std::errc() && parsed.ptr == end ? std::make_optional(n) : std::nullopt;
}

/// Reads a text by lines, and a line by words.
class Reader {
public:
    explicit Reader(const std::string_view text): rest_(text) {}

    /// \returns false at the end; a last line without a line feed does not count
    bool next()
    {
        const auto end = rest_.find('\n');
        if (end == std::string_view::npos)
            return false;
        line_ = rest_.substr(0, end);
        rest_.remove_prefix(end + 1);
        ++number_;
        return true;
    }
    std::string_view line() const { return line_; }
    size_t number() const { return number_; }
    bool more() const { return !rest_.empty(); }

    /// Takes a word off the line, up to and including a blank.
    std::string_view word()
    {
        const auto blank = line_.find(' ');
        const auto word = line_.substr(0, blank);
        line_.remove_prefix(blank == std::string_view::npos ? line_.size() : blank + 1);
        return word;
    }

    [[noreturn]] void refuse(const std::string &why) const
    {
        throw std::runtime_error("line " + std::to_string(number_) + ": " + why);
    }

private:
    std::string_view rest_, line_;
    size_t number_ = 0;
};

} // namespace

std::string Quotas::save() const
{
    size_t lines = 1;
    std::string text(Title);
    text += '\n';
    for (const auto &account : accounts_) {
        if (account.bytes == 0 || account.shared == ledger::NoAccount)
            continue;
        const auto runs = ledger::PeriodWord::Of(table_.accounts[account.shared].period.load());
        text += "class " + account.name + ' ' + QuotaPeriodText(account.period) + ' ' +
                std::to_string(runs.number) + '\n';
        ++lines;
        eachUser(account, [&](const uint32_t place, const ledger::QuotaEntry &entry) {
            const auto bytes = ledger::BytesIn(table_, entry);
            const auto name = ledger::NameOf(entry);
            const auto key = keyOf(account, name);
            // An entry that is being reused has another name, or is not the one found by its key.
            if (bytes == 0 || name.empty() || entry.key.load() != key || ledger::Find(table_.entries, key) != place)
                return;
            text += std::to_string(bytes) + ' ' + Escaped(name) + '\n';
            ++lines;
        });
    }
    return text + "end " + std::to_string(lines) + '\n';
}

void Quotas::load(const std::string_view text)
{
    Reader in(text);
    if (!in.next() || in.line() != Title)
        in.refuse("not a file of quotas, which begins with " + std::string(Title));

    using Counts = std::unordered_map<std::string, int64_t>;
    std::unordered_map<const Account *, Counts> kept;
    std::unordered_set<std::string> seen;
    Counts *counts = nullptr, passing;
    bool ended = false;
    while (!ended && in.next()) {
        const auto first = in.word();
        if (first == "end") {
            if (Whole(in.line()) != static_cast<int64_t>(in.number()) - 1)
                in.refuse("not the number of lines before it");
            ended = true;
        } else if (first == "class") {
            const std::string name(in.word());
            const auto period = QuotaPeriodOf(in.word());
            const auto number = Whole(in.word());
            if (name.empty() || !period || !number || !in.line().empty())
                in.refuse("expected class NAME PERIOD NUMBER");
            if (!seen.insert(name).second)
                in.refuse("class " + name + " is listed twice");
            passing.clear();
            counts = &passing;
            for (const auto &a : accounts_) {
                if (a.name == name && a.bytes > 0 && a.period == *period &&
                        *number >= QuotaPeriodNumber(a.period, local_))
                    counts = &kept[&a];
            }
        } else {
            const auto bytes = Whole(first);
            const auto user = Unescaped(in.line());
            if (!counts || !bytes || *bytes < 0 || *bytes > MostBytes || !user || user->empty() ||
                    user->size() > LongestUser || in.line().find(' ') != std::string_view::npos)
                in.refuse("expected BYTES USER, below a class");
            if (counts->size() >= MostUsers)
                in.refuse("more than " + std::to_string(MostUsers) + " users of one class");
            if (counts->count(*user) > 0)
                in.refuse("this user is listed twice");
            counts->emplace(*user, *bytes);
        }
    }
    if (!ended || in.more())
        in.refuse(ended ? "text follows the end" : "the text is truncated here");

    for (const auto &[account, had] : kept) {
        for (const auto &[user, bytes] : had) {
            const auto place = enter(*account, user);
            if (place != ledger::NoEntry)
                ledger::AddKept(table_, table_.entries[place], bytes);
        }
    }
    moved(); // users that are moved have no requests here yet
}

} // namespace msfrs
