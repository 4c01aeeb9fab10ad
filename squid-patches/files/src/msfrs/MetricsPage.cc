/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "debug/Stream.h"
#include "msfrs/MetricsPage.h"

#include <algorithm>
#include <cerrno>
#include <ostream>
#include <sstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace msfrs::squid
{

/// far more than a worker with thousands of classes writes
static constexpr off_t LargestText = 64*1024*1024;

static bool
StartsWith(const std::string &line, const char * const prefix)
{
    return line.rfind(prefix, 0) == 0;
}

void
MetricsPage::add(const std::string &families)
{
    std::istringstream lines(families);
    size_t current = families_.size(); // index of the family that the line belongs to
    auto known = false; // whether that family has come before
    for (std::string line; std::getline(lines, line); ) {
        if (StartsWith(line, "# TYPE ")) {
            const auto found = std::find_if(families_.begin(), families_.end(), [&line](const Family &f) {
                return f.type == line;
            });
            current = found - families_.begin();
            known = found != families_.end();
            if (!known)
                families_.push_back({line, "", ""});
        } else if (current < families_.size() && !StartsWith(line, "#")) {
            families_[current].samples += line + '\n';
        } else if (current < families_.size() && !known) {
            families_[current].description += line + '\n';
        }
    }
}

void
MetricsPage::print(std::ostream &os) const
{
    for (const auto &family: families_)
        os << family.type << '\n' << family.description << family.samples;
    os << "# EOF\n";
}

int
TextToFile(const std::string &text)
{
    const auto fd = memfd_create("msfrs", MFD_CLOEXEC);
    size_t written = 0;
    while (fd >= 0 && written < text.size()) {
        const auto size = write(fd, text.data() + written, text.size() - written);
        if (size <= 0)
            break;
        written += size;
    }
    if (fd >= 0 && written == text.size())
        return fd;
    const auto error = errno;
    debugs(97, DBG_IMPORTANT, "ERROR: msfrs: cannot write a report of " << text.size() << " bytes to memory: " <<
           xstrerr(error));
    if (fd >= 0)
        close(fd);
    return -1;
}

std::string
TextFromFile(const int fd)
{
    std::string text;
    struct stat info;
    if (fstat(fd, &info) == 0 && info.st_size > 0 && info.st_size <= LargestText) {
        text.resize(info.st_size);
        size_t got = 0;
        while (got < text.size()) {
            const auto size = pread(fd, &text[got], text.size() - got, got);
            if (size <= 0)
                break;
            got += size;
        }
        text.resize(got);
    }
    close(fd);
    return text;
}

} // namespace msfrs::squid
