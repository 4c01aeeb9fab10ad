// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A server's replies, in pieces. They are refused with a printable reason, or are as many messages as were requested.
#include "require.h"
#include "satellites/share/replies.h"

#include <algorithm>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
    using namespace msfrs::share;
    if (size == 0)
        return 0;
    std::string_view text(reinterpret_cast<const char *>(data) + 1, size - 1);
    const size_t piece = std::max<size_t>(data[0], 1);
    Replies replies(1024);
    for (const auto command : {Command::Auth, Command::Fetch, Command::Fetch, Command::Leave})
        replies.expect(command);
    bool good = true;
    for (; good && !text.empty(); text.remove_prefix(std::min(piece, text.size())))
        good = replies.feed(text.substr(0, piece));
    Require(good == replies.failure().empty() && replies.failure().size() < 200);
    for (const char c : replies.failure())
        Require(c >= ' ' && c <= '~');
    if (good && replies.complete())
        Require(replies.take().size() == 2);
    return 0;
}
