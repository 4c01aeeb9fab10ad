// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/http2_session.h"

#include <algorithm>

namespace msfrs::sim::access {

namespace {

enum : unsigned char { ChangeCipherSpec = 20, Handshake = 22, ApplicationData = 23 };
constexpr int64_t HeaderBytes = 5, LongestRecord = 16384, Overhead = 17; // RFC 8446, section 5

// Bytes of the records of OpenSSL, nginx and the trial's client, with an elliptic-curve certificate.
constexpr int64_t ClientHello = 512, ServerHello = 122, ServerExtensions = 28, Certificate = 700,
                  CertificateVerify = 96, Finished = 69, SessionTicket = 250;
constexpr int64_t Preface = 24 + 45 + 13, Settings = 27 + 13;     ///< with their WINDOW_UPDATEs
constexpr int64_t RequestFrame = 69, ResponseFrame = 120;         ///< HEADERS

constexpr int64_t Turn = 32768;                                   ///< nginx: output_buffers
constexpr int64_t Chunk = 8192, FrameHeader = 9;                  ///< nginx: http2_chunk_size

std::string HeaderOf(const unsigned char type, const int64_t length)
{
    return {static_cast<char>(type), 3, 3, static_cast<char>(length >> 8), static_cast<char>(length)};
}

std::string RecordOf(const unsigned char type, const int64_t length)
{
    return HeaderOf(type, length) + std::string(static_cast<size_t>(length), 0);
}

} // namespace

void Http2Session::request(const int64_t size, Watcher watcher, const msfrs_time thinks)
{
    streams_.push_back(std::make_shared<Stream>(Stream{size, std::move(watcher), thinks}));
    if (ready_)
        ask(streams_.back());
}

void Http2Session::leave()
{
    if (onLeave)
        onLeave();
}

/// Sends a message, which the gateway reads after the current call has returned.
void Http2Session::say(const std::string &bytes, Clock::Event heard)
{
    words_.bytes += bytes;
    words_.heard.push_back(std::move(heard));
    clock_.after(0, [self = shared_from_this()] {
        if (self->onWords)
            self->onWords();
    });
}

void Http2Session::ask(const StreamPtr &stream)
{
    const auto answer = [self = shared_from_this(), stream] {
        if (self->closed_)
            return;
        self->queue_.push_back({stream, ResponseFrame, 0, stream->left == 0});
        self->serve();
    };
    say(RecordOf(ApplicationData, RequestFrame + Overhead), [this, stream, answer] {
        if (stream->thinks == 0)
            answer();
        else
            clock_.after(stream->thinks, answer);
    });
}

void Http2Session::writeSteadily()
{
    if (closed_)
        return;
    write(ApplicationData, steady_.bytes - HeaderBytes);
    clock_.after(steady_.every, [self = shared_from_this()] { self->writeSteadily(); });
}

void Http2Session::begin()
{
    say(RecordOf(Handshake, ClientHello), [this] {
        write(Handshake, ServerHello);
        write(ChangeCipherSpec, 1);
        for (const auto length : {ServerExtensions, Certificate, CertificateVerify})
            write(ApplicationData, length);
        write(ApplicationData, Finished, {}, [this] { finishHandshake(); });
    });
}

void Http2Session::finishHandshake()
{
    say(RecordOf(ChangeCipherSpec, 1) + RecordOf(ApplicationData, Finished), [this] {
        for (const auto length : {SessionTicket, SessionTicket, Settings + Overhead})
            write(ApplicationData, length);
    });
    say(RecordOf(ApplicationData, Preface + Overhead), [] {});
    ready_ = true;
    for (const auto &stream : streams_)
        ask(stream);
    if (steady_.bytes > 0)
        say(RecordOf(ApplicationData, RequestFrame + Overhead), [this] { writeSteadily(); });
}

void Http2Session::heard(Sender &sender, const Words &words)
{
    if (closed_)
        return;
    sender_ = &sender;
    sender.onAcknowledged = [this] { serve(); };
    for (const auto &event : words.heard)
        event();
}

void Http2Session::write(const unsigned char type, const int64_t length, std::vector<Piece> pieces, Clock::Event then)
{
    records_.push_back({HeaderOf(type, length), HeaderBytes + length, std::move(pieces), std::move(then)});
    sender_->write(HeaderBytes + length);
}

/// sk_stream_is_writeable(): after it was full, a third of it has to be free.
bool Http2Session::socketHasRoom()
{
    full_ = full_ ? 3 * sender_->held() > 2 * sender_->room() : sender_->held() >= sender_->room();
    return !full_;
}

/// The server writes as much as it can.
void Http2Session::serve()
{
    for (;;) {
        for (; !queue_.empty(); writeFromQueue()) {
            if (!socketHasRoom())
                return;
        }
        if (turns_.empty())
            return;
        const auto stream = turns_.front();
        turns_.pop_front();
        const auto body = std::min(stream->left, Turn);
        stream->left -= body;
        queue_.push_back({stream, body + FrameHeader * ((body + Chunk - 1) / Chunk), body, stream->left == 0});
    }
}

/// Writes a record from the queue.
void Http2Session::writeFromQueue()
{
    std::vector<Piece> pieces;
    int64_t length = 0;
    while (!queue_.empty() && length < LongestRecord) {
        auto &first = queue_.front();
        auto piece = first;
        piece.bytes = std::min(first.bytes, LongestRecord - length);
        length += piece.bytes;
        if (piece.bytes < first.bytes) {
            piece.body = std::min(first.body, piece.bytes);
            piece.end = false;
            first.bytes -= piece.bytes;
            first.body -= piece.body;
        } else {
            if (!piece.end)
                turns_.push_back(piece.stream);
            queue_.pop_front();
        }
        pieces.push_back(std::move(piece));
    }
    write(ApplicationData, length + Overhead, std::move(pieces));
}

const char *Http2Session::pass(const int64_t bytes)
{
    bytes_.assign(static_cast<size_t>(bytes), 0);
    for (int64_t done = 0; done < bytes;) {
        auto &record = records_.front();
        const auto part = std::min(record.size - passed_, bytes - done);
        for (auto n = passed_; n < std::min(HeaderBytes, passed_ + part); ++n)
            bytes_[static_cast<size_t>(done + n - passed_)] = record.header[static_cast<size_t>(n)];
        done += part;
        passed_ += part;
        if (passed_ < record.size)
            break;
        arrived_.push_back(std::move(record));
        records_.pop_front();
        passed_ = 0;
    }
    return bytes_.data();
}

void Http2Session::deliver()
{
    for (auto &record : std::exchange(arrived_, {})) {
        if (record.then)
            record.then();
        for (auto &piece : record.pieces) {
            auto &watcher = piece.stream->watcher;
            if (piece.body > 0)
                watcher.received(piece.body);
            if (!piece.end)
                continue;
            streams_.erase(std::find(streams_.begin(), streams_.end(), piece.stream));
            watcher.ended(false);
        }
    }
}

void Http2Session::close()
{
    closed_ = true;
    if (sender_)
        sender_->onAcknowledged = nullptr;
    sender_ = nullptr;
    for (const auto &stream : std::exchange(streams_, {}))
        stream->watcher.ended(true);
}

void Clients::fetch(const Wish &wish, Watcher watcher)
{
    std::shared_ptr<Http2Session> alone;
    auto &kept = kept_ ? sessions_[{wish.user, wish.server}] : alone;
    if (kept && !kept->closed()) {
        kept->request(wish.size, std::move(watcher), wish.thinks);
        return;
    }
    const auto session = kept = std::make_shared<Http2Session>(clock_);
    if (!kept_) {
        watcher.ended = [session = std::weak_ptr(session), ended = std::move(watcher.ended)](const bool refused) {
            ended(refused);
            if (const auto open = session.lock())
                open->leave();
        };
    }
    session->request(wish.size, std::move(watcher), wish.thinks); // before it is refused
    open_(wish, session);
}

} // namespace msfrs::sim::access
