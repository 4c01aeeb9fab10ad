// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/manager_client.h"

#include "daemon/descriptor.h"
#include "satellites/page/why.h"

#include <event2/buffer.h>
#include <event2/http.h>

namespace msfrs::page {

ManagerClient::ManagerClient(event_base *const base, const Endpoint &squid):
    squid_(squid.text()),
    connection_(evhttp_connection_base_new(base, nullptr, squid.address.c_str(), squid.port), evhttp_connection_free)
{
    if (!connection_)
        throw SystemError("squid " + squid_ + ": no connection can be created");
    evhttp_connection_set_timeout(connection_.get(), Patience);
    evhttp_connection_set_max_body_size(connection_.get(), MostPage);
    evhttp_connection_set_max_headers_size(connection_.get(), 16384);
}

void ManagerClient::ask(const std::string &action, Done done)
{
    struct Asked {
        std::string squid, action;
        Done done;
    };
    auto asked = std::make_unique<Asked>(Asked{squid_, action, std::move(done)});
    const auto answered = [](evhttp_request *const request, void *const data) {
        const std::unique_ptr<Asked> self(static_cast<Asked *>(data));
        ManagerPage page;
        page.status = request ? evhttp_request_get_response_code(request) : 0;
        if (page.status == 200) {
            auto *const body = evhttp_request_get_input_buffer(request);
            page.text.resize(evbuffer_get_length(body));
            evbuffer_remove(body, page.text.data(), page.text.size());
        } else if (page.status == 0) {
            page.why = SilentText(self->squid);
        } else {
            page.why = "Squid at " + self->squid + " answers mgr:" + self->action + " with status " +
                std::to_string(page.status) +
                (page.status == 403     ? "; squid.conf must allow the manager to this address (http_access)."
                     : page.status == 404 ? "; it has no such report: is it built with msfrs?"
                                        : ".");
        }
        self->done(std::move(page));
    };
    auto *const request = evhttp_request_new(answered, asked.get());
    if (!request)
        throw SystemError("no memory for a request");
    auto *const headers = evhttp_request_get_output_headers(request);
    evhttp_add_header(headers, "Host", squid_.c_str());
    evhttp_add_header(headers, "Connection", "close");
    // From here on libevent owns the request, and `answered` is called even if nothing can be sent.
    if (evhttp_make_request(connection_.get(), request, EVHTTP_REQ_GET, ("/squid-internal-mgr/" + action).c_str()) < 0)
        throw SystemError("squid " + squid_ + ": no connection can be created");
    asked.release();
}

} // namespace msfrs::page
