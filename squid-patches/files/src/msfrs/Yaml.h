/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_YAML_H
#define SQUID_SRC_MSFRS_YAML_H

#include <string>

namespace msfrs::squid
{

/// \returns a YAML double-quoted scalar of the text, which should be UTF-8. Characters that YAML does not allow, or
/// that would be invisible, are escaped as \uNNNN. Each byte that is not valid UTF-8 becomes U+FFFD.
std::string Quoted(const std::string &text);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_YAML_H */

