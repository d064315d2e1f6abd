// A filter that rows are appended to, as a stream brings them.
#pragma once
#include <memory>

#include "filter.hpp"

namespace streamgp {

// What a row looked like before it was learned: f ~ N(mean, variance), and the log density of its value.
struct Outlook {
    double *mean, *variance, *log_density;
};

class Stream {
  public:
    virtual ~Stream() = default;
    // Learn rows, none of them before the last one. With `learn` off, nothing is kept.
    virtual void append(const Rows& rows, const Outlook& out, bool learn) = 0;
    virtual std::vector<double> state() = 0;
    virtual void restore(const std::vector<double>& state) = 0;
};

template <class W>
class WidthStream final : public Stream {
  public:
    explicit WidthStream(const Law& law) : filter_(law), regression_(law.fixed) {}

    void append(const Rows& rows, const Outlook& out, bool learn) override {
        if (!learn) {
            WidthStream copy(filter_.law);
            copy.restore(state());
            Rows asking = rows;
            const std::vector<double> nothing(rows.count, NAN);
            asking.y = nothing.data();
            copy.append(asking, out, true);
            return;
        }
        for (int n = 0; n < rows.count; n++) {
            filter_.move(rows.t[n], gap_of(rows, n));
            rows.readout(n, filter_.law, filter_.h.data(), filter_.data.data() + 1);
            const bool asks = std::isnan(rows.y[n]);
            filter_.data[0] = asks ? 0 : rows.y[n];
            filter_.look(asks ? 0 : rows.noise[n]);
            double expected, open;
            regression_.predict(filter_.e.data(), &expected, &open);
            // f is the row's value without noise: y − e, at β's mean
            out.mean[n] = filter_.data[0] - filter_.e[0] + expected;
            out.variance[n] = filter_.across + open;
            const double total = filter_.total + open, rest = filter_.e[0] - expected;
            out.log_density[n] = asks ? NAN : -0.5 * (LOG_TWO_PI + std::log(total) + rest * rest / total);
            if (asks) continue;
            regression_.add(filter_.e.data(), 1 / std::sqrt(filter_.total));
            filter_.learn();
        }
    }

    std::vector<double> state() override {
        std::vector<double> found;
        filter_.save(found);
        found.insert(found.end(), regression_.triangle().begin(), regression_.triangle().end());
        return found;
    }
    void restore(const std::vector<double>& state) override {
        if (state.size() != filter_.size() + regression_.triangle().size())
            throw std::invalid_argument("the state is one of another law");
        regression_.restore(filter_.restore(state.data()));
    }

  private:
    Filter<W> filter_;
    Regression regression_;
};

inline std::unique_ptr<Stream> stream_of(const Law& law) {
    return with_width(law.moving, [&](auto w) -> std::unique_ptr<Stream> {
        return std::make_unique<WidthStream<decltype(w)>>(law);
    });
}

}  // namespace streamgp
