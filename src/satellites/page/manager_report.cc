// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/manager_report.h"

#include "satellites/page/utf8.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

namespace msfrs::page {

namespace {

using Fields = std::vector<std::pair<std::string_view, std::string>>;

/// The character of \uXXXX or \UXXXXXXXX.
std::string Character(Scanner &in, const unsigned digits)
{
    uint32_t code = 0;
    for (unsigned n = 0; n < digits; ++n) {
        const auto digit = HexDigit(in.take());
        if (!digit)
            in.refuse("expected a hexadecimal digit");
        code = code << 4 | *digit;
    }
    return Utf8(code);
}

/// A string after its first quotation mark.
std::string Quoted(Scanner &in)
{
    std::string text;
    while (!in.skip('"')) {
        const char c = in.take();
        if (c != '\\') {
            text += c;
            continue;
        }
        const char escaped = in.take();
        if (escaped == 'u' || escaped == 'U')
            text += Character(in, escaped == 'u' ? 4 : 8);
        else if (escaped == '"' || escaped == '\\')
            text += escaped;
        else
            in.refuse("an unknown escape");
    }
    return text;
}

/// {name: value, ...}
Fields ReadFields(Scanner &in)
{
    Fields fields;
    in.need('{');
    while (!in.skip('}')) {
        if (!fields.empty()) {
            in.need(',');
            in.need(' ');
        }
        const auto name = in.word("_");
        if (name.empty())
            in.refuse("expected a name");
        in.need(':');
        in.need(' ');
        fields.emplace_back(name, in.skip('"') ? Quoted(in) : std::string(in.untilAny(",}")));
    }
    return fields;
}

/// The text of a field, or null.
std::string *Find(Fields &fields, const std::string_view name)
{
    for (auto &[key, value] : fields) {
        if (key == name)
            return &value;
    }
    return nullptr;
}

/// The text of a required field.
std::string &Text(Scanner &in, Fields &fields, const std::string_view name)
{
    if (auto *const found = Find(fields, name))
        return *found;
    in.refuse("missing field " + std::string(name));
}

double Number(const Scanner &in, const std::string_view text, const std::string_view name)
{
    double value = 0;
    const auto end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value, std::chars_format::fixed);
    if (read.ec != std::errc() || read.ptr != end || !(value >= 0 && value < 1e18))
        in.refuse(std::string(name) + ": expected a number from 0 on");
    return value;
}

double Amount(Scanner &in, Fields &fields, const std::string_view name)
{
    return Number(in, Text(in, fields, name), name);
}

/// The reason why requests are held or not, without the yes or no before it.
std::string Because(const std::string_view holding)
{
    constexpr std::string_view Word = ", because ";
    const auto at = holding.find(Word);
    return std::string(at == holding.npos ? holding : holding.substr(at + Word.size()));
}

class Reader {
public:
    void line(Scanner &in)
    {
        const bool top = in.rest()[0] != ' ';
        if (top && in.rest()[0] != '#')
            topLine(in);
        else if (section_ == Section::Classes)
            ofClass(in);
        else if (section_ == Section::Window)
            ofWindow(in);
        else if (section_ == Section::Parties)
            ofParties(in);
        else if (in.rest().substr(0, 5) == "  - {" && section_ != Section::Other)
            row(in);
    }

    ManagerReport finish()
    {
        std::stable_sort(report_.held.begin(), report_.held.end(),
                         [](const HeldRow &a, const HeldRow &b) { return a.waited > b.waited; });
        return std::move(report_);
    }

private:
    enum class Section { Other, Window, Parties, Classes, Held, Users };

    void topLine(Scanner &in)
    {
        const auto key = in.word("_");
        section_ = key == "held"                   ? Section::Held
            : key == "window"                      ? Section::Window
            : key == "parties"                     ? Section::Parties
            : key == "classes"                     ? Section::Classes
            : key == "top_users" || key == "users" ? Section::Users
                                                   : Section::Other;
        if (key != "holding")
            return;
        in.need(':');
        in.need(' ');
        report_.because.push_back(Because(in.rest()));
        limit(in, report_.because.size());
    }

    static bool Begins(const Scanner &in, const std::string_view with)
    {
        return in.rest().substr(0, with.size()) == with;
    }

    /// Reads the intervals of the window. Those of a second worker are of the same link.
    void ofWindow(Scanner &in)
    {
        const bool first = report_.because.size() <= 1;
        if (first && Begins(in, "  interval: ")) {
            in.until(':');
            report_.interval = Number(in, in.rest().substr(2), "interval");
        } else if (first && Begins(in, "    - {ago: ")) {
            in.until('{');
            auto fields = ReadFields(in);
            const auto *const own = Find(fields, "own");
            report_.intervals.push_back({Amount(in, fields, "ago"), Amount(in, fields, "utilisation"),
                                         own && *own != "null" ? std::optional(Number(in, *own, "own"))
                                                               : std::nullopt});
            limit(in, report_.intervals.size());
        }
    }

    /// Reads the parties of the link. Those of a second worker are the same.
    void ofParties(Scanner &in)
    {
        if (report_.because.size() > 1 || !Begins(in, "  - {"))
            return;
        in.until('{');
        auto fields = ReadFields(in);
        if (Text(in, fields, "kind") == "edge" && Text(in, fields, "live") == "true")
            report_.edgeShare += Amount(in, fields, "share");
    }

    /// Reads the name of a class, and its quota, if any.
    void ofClass(Scanner &in)
    {
        if (Begins(in, "  - name: \"")) {
            in.until('"');
            in.need('"');
            class_ = Quoted(in);
        } else if (Begins(in, "    service: ")) {
            in.until(':');
            report_.service.emplace(class_, Number(in, in.rest().substr(2), "service"));
            limit(in, report_.service.size());
        } else if (Begins(in, "    quota: {")) {
            in.until('{');
            auto fields = ReadFields(in);
            report_.quotas.push_back({class_, std::move(Text(in, fields, "over")),
                                      std::move(Text(in, fields, "period")), Amount(in, fields, "bytes"),
                                      Amount(in, fields, "ends_in"), Amount(in, fields, "users"),
                                      Amount(in, fields, "users_over"), {}});
            limit(in, report_.quotas.size());
        } else if (Begins(in, "      - {") && !report_.quotas.empty()) {
            in.until('{');
            auto fields = ReadFields(in);
            auto &most = report_.quotas.back().most;
            most.push_back({std::move(Text(in, fields, "user")), Amount(in, fields, "bytes")});
            limit(in, most.size());
        }
    }

    void row(Scanner &in)
    {
        in.untilAny("{");
        auto fields = ReadFields(in);
        auto user = std::move(Text(in, fields, "user")), cls = std::move(Text(in, fields, "class"));
        if (section_ == Section::Held) {
            const auto *const id = Find(fields, "id");
            report_.held.push_back({std::move(user), std::move(cls), std::move(Text(in, fields, "host")),
                                    std::move(Text(in, fields, "what")), Amount(in, fields, "waited"),
                                    id ? *id : ""});
            limit(in, report_.held.size());
            return;
        }
        const UserRow row{user, cls, Amount(in, fields, "bytes"), Amount(in, fields, "queued"),
                          Amount(in, fields, "in_flight")};
        const auto [known, fresh] = users_.emplace(user + '\n' + cls, report_.users.size());
        if (fresh) {
            report_.users.push_back(row);
            limit(in, report_.users.size());
            return;
        }
        auto &sum = report_.users[known->second];
        sum.bytes += row.bytes;
        sum.queued += row.queued;
        sum.inFlight += row.inFlight;
    }

    static void limit(const Scanner &in, const size_t rows)
    {
        if (rows > MostRows)
            in.refuse("more than " + std::to_string(MostRows) + " rows");
    }

    Section section_ = Section::Other;
    ManagerReport report_;
    std::string class_; // being read
    std::unordered_map<std::string, size_t> users_; // row by user and class
};

} // namespace

ManagerReport ReadManagerReport(const std::string_view text)
{
    Reader reader;
    EachLine(text, [&](Scanner &in) { reader.line(in); });
    return reader.finish();
}

} // namespace msfrs::page
