// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/openmetrics.h"

#include <charconv>
#include <cmath>

namespace msfrs::page {

namespace {

std::string Name(Scanner &in)
{
    const auto name = in.word("_:");
    if (name.empty() || (name[0] >= '0' && name[0] <= '9'))
        in.refuse("expected a name");
    return std::string(name);
}

/// A label's value, after its first quotation mark.
std::string Value(Scanner &in)
{
    std::string value;
    while (!in.skip('"')) {
        const char c = in.take();
        if (c != '\\') {
            value += c;
            continue;
        }
        const char escaped = in.take();
        if (escaped != 'n' && escaped != '"' && escaped != '\\')
            in.refuse("an unknown escape");
        value += escaped == 'n' ? '\n' : escaped;
    }
    return value;
}

double Number(Scanner &in)
{
    const auto text = in.until(' '); // a time stamp may follow
    if (text == "NaN" || text == "+Inf" || text == "-Inf")
        return NAN;
    double value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size())
        in.refuse("expected a number");
    return value;
}

Sample ReadSample(Scanner &in)
{
    Sample sample;
    sample.name = Name(in);
    if (in.skip('{')) {
        while (!in.skip('}')) {
            if (!sample.labels.empty())
                in.need(',');
            auto name = Name(in);
            in.need('=');
            in.need('"');
            sample.labels.emplace_back(std::move(name), Value(in));
        }
    }
    in.need(' ');
    sample.value = Number(in);
    return sample;
}

} // namespace

std::vector<Sample> ReadOpenMetrics(const std::string_view text)
{
    std::vector<Sample> samples;
    bool ended = false;
    EachLine(text, [&](Scanner &in) {
        if (ended)
            in.refuse("text follows the end");
        if (in.rest() == "# EOF")
            ended = true;
        if (in.rest().substr(0, 1) == "#")
            return;
        auto sample = ReadSample(in);
        if (samples.size() == MostSamples)
            in.refuse("more than " + std::to_string(MostSamples) + " samples");
        if (std::isfinite(sample.value))
            samples.push_back(std::move(sample));
    });
    if (!ended)
        throw PageError("the metrics are truncated: # EOF is missing");
    return samples;
}

} // namespace msfrs::page
