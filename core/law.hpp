// The law of the states: how they move, and what rows see of them.
//
// There are p moving numbers, in independent blocks, and k static ones, which never change: levels,
// cosines in the frame that turns with them, weights of mean functions. All have unit prior variance
// (of a given block: the covariance that it is given); amplitudes are in the readouts. A row sees
//     y = h·s(t) + x·β + N(0, r),  s the moving numbers, β the static ones,
// with (h, x)[i] = readouts[channel][i] · features[feature of i], a missing feature being one.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "matern.hpp"

namespace streamgp {

constexpr int GIVEN = 3;  // the kind of a block whose moves are given; 0, 1, 2 are orders of Matérns

struct Block {
    int kind, offset, size;
    double rate;
    int place;  // where its matrices begin among those of all blocks
    int given;  // where they begin among those of given blocks
};

struct Law {
    std::vector<Block> blocks;
    int moving = 0, fixed = 0;            // p and k
    int entries = 0, given_entries = 0;   // of the matrices of all blocks, and of the given ones
    const double* start = nullptr;        // covariances of given blocks
    const double *given_a = nullptr, *given_q = nullptr;  // their A and Q over each distinct gap

    int columns() const { return 1 + fixed; }
    int states() const { return moving + fixed; }

    void add(int kind, int size, double rate) {
        if (kind < 0 || kind > GIVEN || (kind < GIVEN && size != kind + 1) || size < 1)
            throw std::invalid_argument("a block has an unknown kind or size");
        if (kind < GIVEN && !(rate > 0 && std::isfinite(rate)))
            throw std::invalid_argument("the rate of a block is not positive and finite");
        blocks.push_back({kind, moving, size, rate, entries, given_entries});
        moving += size;
        entries += size * size;
        if (kind == GIVEN) given_entries += size * size;
    }
    const double* stationary(const Block& b) const {
        return b.kind == GIVEN ? start + b.given : matern::STATIONARY[b.kind];
    }
};

struct Rows {  // in the order of time; y = NaN marks a row that only asks
    int count;
    const double *t, *y, *noise;
    const int* channel;
    const double* readouts;            // channels × states
    const int* feature;                // of each state, −1 for none
    const double* features;            // rows × width
    int width;
    const int* gap;                    // which given gap lies before each row; nullptr without given blocks

    void readout(int row, const Law& law, double* h, double* x) const {
        const double* own = readouts + std::size_t(channel[row]) * law.states();
        const double* seen = features + std::size_t(row) * width;
        for (int i = 0; i < law.states(); i++) {
            const double value = feature[i] < 0 ? own[i] : own[i] * seen[feature[i]];
            (i < law.moving ? h[i] : x[i - law.moving]) = value;
        }
    }
};

// A and Q of all blocks over one gap.
struct Move {
    double gap = -1;
    int which = -1;
    std::vector<double> a, q;
};

// Moves by gap. The gaps of a stream are equal or few, up to the rounding of its times.
class Moves {
  public:
    explicit Moves(const Law& law) : law_(law) {}

    const Move& over(double before, double after, int which) {
        const double gap = after - before;
        if (!(gap >= 0)) throw std::invalid_argument("times are not in order");
        const double rounding =
            4 * std::numeric_limits<double>::epsilon() * std::max(std::fabs(before), std::fabs(after));
        for (Move& known : kept_)
            if (known.which == which && std::fabs(known.gap - gap) <= rounding) return known;
        Move& oldest = kept_[next_++ % KEPT];
        fill(oldest, gap, which);
        return oldest;
    }

  private:
    static constexpr int KEPT = 4;
    const Law& law_;
    Move kept_[KEPT];
    unsigned next_ = 0;

    void fill(Move& move, double gap, int which) {
        move.gap = gap, move.which = which;
        move.a.resize(law_.entries), move.q.resize(law_.entries);
        for (const Block& b : law_.blocks) {
            double *a = &move.a[b.place], *q = &move.q[b.place];
            if (b.kind == GIVEN) {
                const std::size_t from = std::size_t(which) * law_.given_entries + b.given;
                std::copy_n(law_.given_a + from, b.size * b.size, a);
                std::copy_n(law_.given_q + from, b.size * b.size, q);
            } else {
                matern::transition(b.kind, b.rate * gap, a);
                matern::noise(b.kind, b.rate * gap, a, q);
            }
        }
    }
};

}  // namespace streamgp
