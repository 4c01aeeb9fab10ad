/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_ARCHIVE_H
#define SQUID_SRC_MSFRS_ARCHIVE_H

#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace msfrs::squid
{

/// Writes values in sequence, or reads them. Both use the same list of fields: Fields(Archive &, T &) for a struct T.
/// A read beyond the end yields nothing, and good() is false then. Only between processes of the same program.
class Archive
{
public:
    Archive() = default;
    explicit Archive(const std::string &text): text_(text), reading_(true) {}

    template <class... T>
    void operator()(T &... values) { (one(values), ...); }

    bool good() const { return good_ && at_ == text_.size(); }
    const std::string &text() const { return text_; }

private:
    template <class T>
    void one(T &value)
    {
        if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
            bytes(&value, sizeof(value));
        else
            Fields(*this, value);
    }

    void one(std::string &value)
    {
        auto size = value.size();
        one(size);
        if (reading_)
            value.resize(left(size));
        bytes(value.data(), value.size());
    }

    template <class T>
    void one(std::optional<T> &value)
    {
        auto there = value.has_value();
        one(there);
        if (there)
            one(reading_ ? value.emplace() : *value);
    }

    template <class T>
    void one(std::vector<T> &values) { several(values); }
    template <class T>
    void one(std::deque<T> &values) { several(values); }

    template <class List>
    void several(List &values)
    {
        auto size = values.size();
        one(size);
        if (!reading_) {
            for (auto &value: values)
                one(value);
            return;
        }
        values.clear();
        while (good_ && values.size() < size) // not resize(): the size is not to be trusted
            one(values.emplace_back());
    }

    void bytes(void * const data, const size_t size)
    {
        if (!reading_)
            text_.append(static_cast<const char *>(data), size);
        else if (left(size) == size)
            memcpy(data, text_.data() + at_, size);
        at_ += reading_ ? left(size) : size;
    }

    /// \returns size if that many bytes remain, else 0, and good() is false from then on
    size_t left(const size_t size)
    {
        good_ = good_ && size <= text_.size() - at_;
        return good_ ? size : 0;
    }

    std::string text_;
    size_t at_ = 0;
    bool reading_ = false;
    bool good_ = true;
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_ARCHIVE_H */

