// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Reads a line of untrusted text from left to right.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace msfrs::page {

/// A malformed page of the manager; what() has the line and the reason.
class PageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The rest of a line. Malformed text is refused by a PageError with the number of the line.
class Scanner {
public:
    Scanner(const std::string_view line, const size_t number): rest_(line), number_(number) {}

    std::string_view rest() const { return rest_; }
    bool atEnd() const { return rest_.empty(); }

    /// Takes a required character.
    char take()
    {
        if (atEnd())
            refuse("ends too early");
        const char c = rest_.front();
        rest_.remove_prefix(1);
        return c;
    }
    /// Takes a character if it is next.
    bool skip(const char c)
    {
        if (atEnd() || rest_.front() != c)
            return false;
        rest_.remove_prefix(1);
        return true;
    }
    void need(const char c)
    {
        if (!skip(c))
            refuse(std::string("expected '") + c + "'");
    }
    /// Takes letters, digits and characters of `more`; possibly none.
    std::string_view word(const std::string_view more)
    {
        size_t n = 0;
        while (n < rest_.size() &&
               ((rest_[n] >= 'a' && rest_[n] <= 'z') || (rest_[n] >= 'A' && rest_[n] <= 'Z') ||
                (rest_[n] >= '0' && rest_[n] <= '9') || more.find(rest_[n]) != more.npos))
            ++n;
        return takeFront(n);
    }
    /// Takes everything before the first of the characters, or the whole rest.
    std::string_view untilAny(const std::string_view ends) { return takeFront(rest_.find_first_of(ends)); }
    std::string_view until(const char end) { return untilAny({&end, 1}); }

    [[noreturn]] void refuse(const std::string &what) const
    {
        throw PageError("line " + std::to_string(number_) + ": " + what);
    }

private:
    std::string_view takeFront(const size_t most)
    {
        const auto front = rest_.substr(0, most);
        rest_.remove_prefix(front.size());
        return front;
    }

    std::string_view rest_;
    size_t number_;
};

/// Calls with a Scanner of each nonempty line.
template <class Call>
void EachLine(std::string_view text, const Call &call)
{
    for (size_t number = 1; !text.empty(); ++number) {
        const auto end = text.find('\n');
        auto line = text.substr(0, end);
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
        if (!line.empty() && line.back() == '\r')
            line.remove_suffix(1);
        Scanner in(line, number);
        if (!in.atEnd())
            call(in);
    }
}

} // namespace msfrs::page
