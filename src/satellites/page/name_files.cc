// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/name_files.h"

#include "daemon/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace msfrs::page {

namespace {

/// A file's content. \throws SystemError
std::string ContentOf(const std::string &path)
{
    struct stat found{};
    // Not blocked by a FIFO in its place.
    const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (file.get() < 0 || fstat(file.get(), &found) < 0)
        Fail(path);
    if (!S_ISREG(found.st_mode) || found.st_size > static_cast<off_t>(NameFiles::MostSize))
        throw SystemError(path + ": expected a regular file of at most " + std::to_string(NameFiles::MostSize >> 20) +
                          " MB");
    std::string text(static_cast<size_t>(found.st_size), '\0');
    size_t done = 0;
    for (ssize_t n = 1; n > 0 && done < text.size(); done += static_cast<size_t>(n)) {
        n = read(file.get(), text.data() + done, text.size() - done);
        if (n < 0)
            Fail(path);
    }
    text.resize(done);
    return text;
}

} // namespace

std::optional<NameBook> NameFiles::changed(const Log &log)
{
    std::string state;
    for (const auto &file : files_) {
        struct stat found{};
        if (stat(file.path.c_str(), &found) < 0)
            state += "none ";
        else
            state += std::to_string(found.st_ino) + ' ' + std::to_string(found.st_size) + ' ' +
                std::to_string(found.st_mtim.tv_sec) + '.' + std::to_string(found.st_mtim.tv_nsec) + ' ';
    }
    if (state == state_)
        return {};
    state_ = std::move(state);
    NameBook book;
    for (const auto &file : files_) {
        try {
            const auto text = ContentOf(file.path);
            if (file.leases)
                book.addLeases(text);
            else
                book.addNames(text);
        } catch (const SystemError &error) {
            log(std::string(file.leases ? "leases " : "names ") + error.what() + "; its users have addresses only");
        }
    }
    return book;
}

} // namespace msfrs::page
