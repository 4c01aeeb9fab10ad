// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// HTTP/2 in TLS 1.3 between a client and a server: both ends, and the records between them as the gateway sees them.
/// The client is next to the gateway and receives data at once. The server is like nginx, the field trial's origin:
///
///     responses --- 32 KB of each in turn, in frames of 8 KB ---> queue --- records of 16 KB ---> socket
///
/// It writes as long as the socket has room (Sender::room()), and queue and socket are FIFO. So large responses share a
/// connection by turns of 32 KB, and small ones wait for the socket. Flow control of HTTP/2 and limits of streams are
/// not simulated: browsers' windows are larger than those of TCP here.
#pragma once

#include "sim/access/gateway.h"

#include <map>
#include <utility>

namespace msfrs::sim::access {

class Http2Session : public std::enable_shared_from_this<Http2Session> {
public:
    /// A message of the client: bytes, and the server's actions when it has received them.
    struct Words {
        std::string bytes;
        std::vector<Clock::Event> heard;
    };

    explicit Http2Session(Clock &clock): clock_(clock) {}
    Http2Session(const Http2Session &) = delete;
    Http2Session &operator=(const Http2Session &) = delete;

    // The client.
    /// \param thinks as of Wish, not Never
    void request(int64_t size, Watcher, msfrs_time thinks = 0);
    /// The client asks for a response without an end: from then on the server writes a record of `bytes` each `every` ns.
    void stream(int64_t bytes, msfrs_time every) { steady_ = {bytes, every}; }
    /// Closes the tunnel.
    void leave();

    // The gateway: called when the client has sent something, and when it has closed the tunnel.
    std::function<void()> onWords, onLeave;
    /// The tunnel is open, and both ends may send.
    void begin();
    Words take() { return std::exchange(words_, {}); }
    /// The server has received a message.
    void heard(Sender &, const Words &);
    /// The next bytes that the server has written; valid until the next call.
    const char *pass(int64_t bytes);
    /// Delivers passed records to the client.
    void deliver();
    /// There is no tunnel any more, or never was: requests that have not ended are refused.
    void close();
    bool closed() const { return closed_; }

private:
    struct Stream {
        int64_t left;         ///< bytes of the body that are not in the queue yet
        Watcher watcher;
        msfrs_time thinks;
    };
    using StreamPtr = std::shared_ptr<Stream>;
    /// A part of a record that belongs to a response.
    struct Piece {
        StreamPtr stream;
        int64_t bytes, body;  ///< with and without frame headers
        bool end;             ///< it ends the response
    };
    struct Record {
        std::string header;
        int64_t size;         ///< with its header, bytes
        std::vector<Piece> pieces;
        Clock::Event then;    ///< further action of the client; may be empty
    };

    void say(const std::string &bytes, Clock::Event heard);
    void ask(const StreamPtr &);
    void writeSteadily();
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
    std::vector<StreamPtr> streams_;     ///< those that have not ended
    // The server's end.
    Sender *sender_ = nullptr;
    std::deque<StreamPtr> turns_;        ///< responses with bytes left and none in the queue
    std::deque<Piece> queue_;
    bool full_ = false;                  ///< the socket was full, and has not reported room since
    struct {
        int64_t bytes = 0;
        msfrs_time every = 0;
    } steady_;                           ///< see stream(); 0: not called
    // Between them.
    std::deque<Record> records_;         ///< written, not passed completely
    int64_t passed_ = 0;                 ///< bytes of the first of them
    std::vector<Record> arrived_;        ///< passed completely, not delivered
    std::string bytes_;
};

/// Clients with a session for each server that they use.
class Clients {
public:
    /// Opens a session at a gateway.
    using Open = std::function<void(const Wish &, std::shared_ptr<Http2Session>)>;
    /// \param kept a user's session with a server is kept for later requests; false: each request has one of its own
    Clients(Clock &clock, Open open, const bool kept): clock_(clock), open_(std::move(open)), kept_(kept) {}

    void fetch(const Wish &, Watcher);
    /// Opens a session without requests.
    void idle(const Wish &wish) { open_(wish, std::make_shared<Http2Session>(clock_)); }
    /// Opens a session for Http2Session::stream().
    void stream(const Wish &wish, const int64_t bytes, const msfrs_time every)
    {
        const auto session = std::make_shared<Http2Session>(clock_);
        session->stream(bytes, every);
        open_(wish, session);
    }

private:
    Clock &clock_;
    Open open_;
    bool kept_;
    std::map<std::pair<std::string, uint32_t>, std::shared_ptr<Http2Session>> sessions_; ///< by user and server
};

} // namespace msfrs::sim::access
