// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// HTTP/2 in TLS 1.3 between a client and a server: both ends, and the records between them as the gateway sees them.
/// The client is beside the gateway: what it is sent it has at once. The server is as nginx, the field trial's origin:
///
///     responses --- 32 KB of each in turn, in frames of 8 KB ---> queue --- records of 16 KB ---> socket
///
/// It writes as long as the socket has room (Sender::room()), and nothing overtakes what is in queue or socket. So
/// large responses share a connection by turns of 32 KB, and small ones wait for the socket. Flow control of HTTP/2 and
/// limits of streams are left out: windows of browsers are wider than those of TCP here.
#ifndef MSFRS_SIM_ACCESS_HTTP2_SESSION_H
#define MSFRS_SIM_ACCESS_HTTP2_SESSION_H

#include "sim/access/gateway.h"

#include <map>
#include <utility>

namespace msfrs::sim::access {

class Http2Session : public std::enable_shared_from_this<Http2Session> {
public:
    /// What the client says: bytes, and what the server does when it has heard them.
    struct Words {
        std::string bytes;
        std::vector<Clock::Event> heard;
    };

    explicit Http2Session(Clock &clock): clock_(clock) {}
    Http2Session(const Http2Session &) = delete;
    Http2Session &operator=(const Http2Session &) = delete;

    // The client.
    void request(int64_t size, Watcher);
    /// It wants the tunnel no more.
    void leave();

    // The gateway: called when the client has sent something, and when it has closed the tunnel.
    std::function<void()> onWords, onLeave;
    /// A tunnel is there, and both may speak.
    void begin();
    Words take() { return std::exchange(words_, {}); }
    /// These have come to the server.
    void heard(Sender &, const Words &);
    /// The next bytes of the server, which have been written; valid until the next call.
    const char *pass(int64_t bytes);
    /// The client gets what has passed.
    void deliver();
    /// There is no tunnel, or none any more: requests that have not ended are refused.
    void close();
    bool closed() const { return closed_; }

private:
    struct Stream {
        int64_t left;         ///< bytes of the body that are not in the queue yet
        Watcher watcher;
    };
    using StreamPtr = std::shared_ptr<Stream>;
    /// Of a response, part of a record.
    struct Piece {
        StreamPtr stream;
        int64_t bytes, body;  ///< with and without headers of frames
        bool end;             ///< of the response
    };
    struct Record {
        std::string header;
        int64_t size;         ///< with its header, bytes
        std::vector<Piece> pieces;
        Clock::Event then;    ///< what the client does besides; may be empty
    };

    void say(const std::string &bytes, Clock::Event heard);
    void ask(const StreamPtr &);
    void greet();
    void finishHandshake();
    void write(unsigned char type, int64_t length, std::vector<Piece> = {}, Clock::Event then = {});
    void writeFromQueue();
    void serve();
    bool socketHasRoom();

    Clock &clock_;
    bool closed_ = false;
    // The client's end.
    Words words_;
    bool ready_ = false;                 ///< requests may be sent
    std::vector<StreamPtr> streams_;     ///< that have not ended
    // The server's end.
    Sender *sender_ = nullptr;
    std::deque<StreamPtr> turns_;        ///< responses with more to come, of which nothing is in the queue
    std::deque<Piece> queue_;
    bool full_ = false;                  ///< the socket was, and has not told of room since then
    // Between them.
    std::deque<Record> records_;         ///< written, and not passed in full
    int64_t passed_ = 0;                 ///< bytes of the first of them
    std::vector<Record> arrived_;        ///< passed in full, and not delivered
    std::string bytes_;
};

/// Clients that have a session with each server that they ask.
class Clients {
public:
    /// Brings a session to a gateway.
    using Open = std::function<void(const Wish &, std::shared_ptr<Http2Session>)>;
    /// \param kept a user's session with a server is kept for the requests to come; false: each has one of its own
    Clients(Clock &clock, Open open, const bool kept): clock_(clock), open_(std::move(open)), kept_(kept) {}

    void fetch(const Wish &, Watcher);
    /// Opens a session in which nothing is asked for.
    void idle(const Wish &wish) { open_(wish, std::make_shared<Http2Session>(clock_)); }

private:
    Clock &clock_;
    Open open_;
    bool kept_;
    std::map<std::pair<std::string, uint32_t>, std::shared_ptr<Http2Session>> sessions_; ///< by user and server
};

} // namespace msfrs::sim::access

#endif
