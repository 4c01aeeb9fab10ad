// SPDX-License-Identifier: GPL-2.0-or-later
#include "packets.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <set>

namespace msfrs::test {
namespace {

using namespace middlebox;

/// The receiver: it draws key and salt as encrypt.cc does.
class Receiver {
public:
    explicit Receiver(const uint64_t seed)
    {
        const auto random = Options(seed).random;
        const auto put = [](uint8_t *const at, const uint64_t value, const int bytes) {
            for (int i = 0; i < bytes; ++i)
                at[i] = static_cast<uint8_t>(value >> 8 * (bytes - 1 - i));
        };
        put(key_, random(), 8);
        put(key_ + 8, random(), 8);
        put(nonce_, random(), 4);
    }

    /// Payload, padding, its length and the protocol; nothing if the check value is wrong.
    std::optional<Bytes> open(const Bytes &made, const size_t header)
    {
        const size_t data = header + 16, length = made.size() - data - 16;
        std::copy_n(&made[header + 8], 8, nonce_ + 4);
        const std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX *)> c(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
        Bytes out(length), check(made.end() - 16, made.end());
        int n = 0;
        EXPECT_EQ(EVP_DecryptInit_ex(c.get(), EVP_aes_128_gcm(), nullptr, key_, nonce_), 1);
        EXPECT_EQ(EVP_DecryptUpdate(c.get(), nullptr, &n, &made[header], 8), 1);
        EXPECT_EQ(EVP_DecryptUpdate(c.get(), out.data(), &n, &made[data], static_cast<int>(length)), 1);
        EXPECT_EQ(EVP_CIPHER_CTX_ctrl(c.get(), EVP_CTRL_GCM_SET_TAG, 16, check.data()), 1);
        if (EVP_DecryptFinal_ex(c.get(), nullptr, &n) != 1)
            return {};
        return out;
    }

private:
    uint8_t key_[16], nonce_[12];
};

TEST(Encrypt, TheReceiverHasThePayloadAndSeesEveryChange)
{
    const auto encrypt = MakeEncrypt(Options(5));
    Receiver receiver(5);
    Random random(9);
    for (const auto family : {Family::V4, Family::V6}) {
        const size_t header = family == Family::V4 ? 20 : 40;
        for (size_t length = 0; length < 70; ++length) {
            const auto packet = Udp(RandomBytes(random, length), 1, family);
            auto made = Process(*encrypt, packet);
            EXPECT_EQ((made.size() - header) % 4, 0u) << "RFC 4303: ends on a multiple of 4 bytes";
            EXPECT_TRUE(std::equal(packet.begin(), packet.begin() + static_cast<long>(header), made.begin()));
            const auto opened = receiver.open(made, header);
            ASSERT_TRUE(opened) << length;
            EXPECT_EQ(opened->back(), 17) << "next header";
            const size_t padding = opened->at(opened->size() - 2), payload = packet.size() - header;
            EXPECT_LT(padding, 4u);
            ASSERT_EQ(opened->size(), payload + padding + 2);
            EXPECT_TRUE(std::equal(opened->begin(), opened->begin() + static_cast<long>(payload),
                                   packet.begin() + static_cast<long>(header)));
            made[header + random.below(made.size() - header)] ^= 1;
            EXPECT_FALSE(receiver.open(made, header));
        }
    }
    EXPECT_EQ(Count(*encrypt, "encrypted_packets"), 140u);
    EXPECT_EQ(Count(*encrypt, "failed_packets"), 0u);
}

TEST(Encrypt, NoNonceComesTwice)
{
    const auto encrypt = MakeEncrypt(Options());
    std::set<Bytes> nonces;
    for (int n = 0; n < 1000; ++n) {
        const auto made = Process(*encrypt, Udp({1}));
        EXPECT_TRUE(nonces.emplace(made.begin() + 28, made.begin() + 36).second);
    }
}

} // namespace
} // namespace msfrs::test
