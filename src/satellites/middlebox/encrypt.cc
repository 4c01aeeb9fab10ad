// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// IPsec encryption: AES-128-GCM as in ESP (RFC 4106, transport mode): the IP header is followed by security parameters
/// index and sequence number, which are authenticated with the payload; then by the nonce's explicit half, the
/// encrypted payload with its trailer, and an integrity check value of 16 bytes.
///
/// The sequence number has 64 bits and is the nonce, so that none repeats under the key, which lives as long as the
/// object. The header's length and protocol stay unchanged: there is no receiver.
#include "satellites/middlebox/function.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <algorithm>
#include <stdexcept>

namespace msfrs::middlebox {

namespace {

constexpr size_t KeyLength = 16, SaltLength = 4, NonceLength = 8, EspHeader = 8, CheckLength = 16;

/// \throws std::runtime_error with OpenSSL's message
void Succeed(const int result, const char *const step)
{
    if (result == 1)
        return;
    char why[160] = "";
    ERR_error_string_n(ERR_get_error(), why, sizeof(why));
    throw std::runtime_error(std::string("encrypt: ") + step + ": " + why);
}

void Put(uint8_t *const at, uint64_t value, const size_t bytes)
{
    for (size_t i = bytes; i-- > 0; value >>= 8)
        at[i] = static_cast<uint8_t>(value);
}

class Encrypt : public Function {
public:
    explicit Encrypt(const FunctionOptions &options): context_(EVP_CIPHER_CTX_new())
    {
        if (!context_)
            throw std::bad_alloc();
        uint8_t key[KeyLength];
        Put(key, options.random(), 8);
        Put(key + 8, options.random(), 8);
        Put(nonce_, options.random(), SaltLength);
        Succeed(EVP_EncryptInit_ex(context_.get(), EVP_aes_128_gcm(), nullptr, key, nullptr), "AES-128-GCM");
        OPENSSL_cleanse(key, sizeof(key));
    }

    Span process(const FunctionInput &in) override
    {
        const auto payload = in.payload();
        const size_t head = in.payloadAt(), data = head + EspHeader + NonceLength;
        // Padding to 4 bytes, its length, and the protocol of the payload.
        const size_t padding = (4 - (payload.length + 2) % 4) % 4, trailer = padding + 2;
        out_.resize(data + payload.length + trailer + CheckLength);
        std::copy_n(in.packet.data, head, out_.begin());

        ++sequence_;
        Put(&out_[head], ParametersIndex, 4);
        Put(&out_[head + 4], sequence_, 4); // its low half
        Put(&out_[head + EspHeader], sequence_, NonceLength);
        Put(nonce_ + SaltLength, sequence_, NonceLength);
        uint8_t tail[5];
        for (size_t i = 0; i < padding; ++i)
            tail[i] = static_cast<uint8_t>(i + 1);
        tail[padding] = static_cast<uint8_t>(padding);
        tail[padding + 1] = in.packet.data[in.key.family == Family::V4 ? 9 : 6];

        auto *const c = context_.get();
        int n = 0;
        const bool good = EVP_EncryptInit_ex(c, nullptr, nullptr, nullptr, nonce_) == 1 &&
            EVP_EncryptUpdate(c, nullptr, &n, &out_[head], EspHeader) == 1 &&
            EVP_EncryptUpdate(c, &out_[data], &n, payload.data, static_cast<int>(payload.length)) == 1 &&
            EVP_EncryptUpdate(c, &out_[data + payload.length], &n, tail, static_cast<int>(trailer)) == 1 &&
            EVP_EncryptFinal_ex(c, &out_[out_.size() - CheckLength], &n) == 1 &&
            EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, CheckLength, &out_[out_.size() - CheckLength]) == 1;
        if (!good) {
            ERR_clear_error();
            ++failed_;
            return {nullptr, 0};
        }
        ++encrypted_;
        bytes_ += payload.length;
        return {out_.data(), out_.size()};
    }

    std::vector<FunctionCount> counts() const override
    {
        return {{"encrypted_packets", encrypted_},
                {"encrypted_bytes", bytes_},
                {"failed_packets", failed_}};
    }

private:
    static constexpr uint32_t ParametersIndex = 256; ///< the first that is not reserved (RFC 4303)

    struct Free {
        void operator()(EVP_CIPHER_CTX *const c) const { EVP_CIPHER_CTX_free(c); }
    };

    std::unique_ptr<EVP_CIPHER_CTX, Free> context_;
    uint8_t nonce_[SaltLength + NonceLength];
    std::vector<uint8_t> out_;
    uint64_t sequence_ = 0, encrypted_ = 0, bytes_ = 0, failed_ = 0;
};

} // namespace

std::unique_ptr<Function> MakeEncrypt(const FunctionOptions &options) { return std::make_unique<Encrypt>(options); }

} // namespace msfrs::middlebox
