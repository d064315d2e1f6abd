// The Kalman filter over scalar rows.
//
// The static numbers are not part of its state: the filter runs on the columns (y, x) of a row at once,
// and the innovations of these columns are the rows of a regression on β. Whatever an amplitude and
// however small the noise, nothing large is subtracted from something large.
#pragma once
#include <cstring>
#include <vector>

#include "law.hpp"
#include "regression.hpp"

namespace streamgp {

constexpr double LOG_TWO_PI = 1.8378770664093454836;

// The width of rows in memory: at least p, and known to the compiler where p is small.
template <int N>
struct Fixed {
    explicit Fixed(int) {}
    constexpr operator int() const { return N; }
};
struct Free {
    int width;
    explicit Free(int n) : width(n) {}
    operator int() const { return width; }
};

// Calls f with the narrowest of these widths that holds p numbers.
template <class F>
auto with_width(int p, F f) {
    if (p <= 2) return f(Fixed<2>(p));
    if (p <= 4) return f(Fixed<4>(p));
    if (p <= 6) return f(Fixed<6>(p));
    if (p <= 8) return f(Fixed<8>(p));
    if (p <= 12) return f(Fixed<12>(p));
    if (p <= 16) return f(Fixed<16>(p));
    if (p <= 24) return f(Fixed<24>(p));
    return f(Free((p + 7) / 8 * 8));
}

template <class W>
inline double dot(W w, const double* a, const double* b) {
    double sum = 0;
    for (int i = 0; i < w; i++) sum += a[i] * b[i];
    return sum;
}

// Calls f with the size of a block, known to the compiler where it is that of a Matérn.
template <class F>
inline void with_size(int size, F f) {
    switch (size) {
        case 1: return f(Fixed<1>(size));
        case 2: return f(Fixed<2>(size));
        case 3: return f(Fixed<3>(size));
        default: return f(Free(size));
    }
}

// X ← A X, or Aᵀ X, for X with w columns.
template <bool TRANSPOSED, class W>
inline void times(const Law& law, const double* a, W w, double* x, double* scratch) {
    for (const Block& b : law.blocks) with_size(b.size, [&](auto size) {
        const double* own = a + b.place;
        double *block = x + b.offset * w, *__restrict from = scratch;
        for (int i = 0; i < size * w; i++) from[i] = block[i];
        for (int i = 0; i < size; i++) {
            double* __restrict row = block + i * w;
            for (int j = 0; j < w; j++) row[j] = (TRANSPOSED ? own[i] : own[i * size]) * from[j];
            for (int l = 1; l < size; l++) {
                const double factor = TRANSPOSED ? own[l * size + i] : own[i * size + l];
                for (int j = 0; j < w; j++) row[j] += factor * from[l * w + j];
            }
        }
    });
}

// X ← A X Aᵀ, or Aᵀ X A, for a symmetric X.
template <bool TRANSPOSED, class W>
inline void around(const Law& law, const double* a, W w, double* x, double* scratch) {
    times<TRANSPOSED>(law, a, w, x, scratch);
    for (int i = 1; i < law.moving; i++)
        for (int j = 0; j < i; j++) std::swap(x[i * w + j], x[j * w + i]);
    times<TRANSPOSED>(law, a, w, x, scratch);
}

// Each of some vectors v, w apart: v ← A v, or Aᵀ v.
template <bool TRANSPOSED, class W>
inline void turn(const Law& law, const double* a, W w, double* v, int count, double* scratch) {
    for (const Block& b : law.blocks) with_size(b.size, [&](auto size) {
        const double* own = a + b.place;
        double* __restrict from = scratch;
        for (int n = 0; n < count; n++) {
            double* __restrict block = v + n * w + b.offset;
            for (int i = 0; i < size; i++) from[i] = block[i];
            for (int i = 0; i < size; i++) {
                double sum = 0;
                for (int l = 0; l < size; l++) sum += (TRANSPOSED ? own[l * size + i] : own[i * size + l]) * from[l];
                block[i] = sum;
            }
        }
    });
}

// What the filter knows at one time, and what it found at one row.
template <class W>
class Filter {
  public:
    const Law& law;
    const W w;
    const int columns;
    bool begun = false;
    double time = 0;
    std::vector<double> spread;  // C, p × w
    std::vector<double> mean;    // M, columns × w
    std::vector<double> h, u, e, data;  // of the last row: readout, C h, innovations, (y, x)
    double across = 0, total = 0, seen = 0;  // of the last row: h·C h, S, and h·M of the column of y

    explicit Filter(const Law& of)
        : law(of), w(of.moving), columns(of.columns()), spread(std::size_t(of.moving) * w, 0.0),
          mean(std::size_t(columns) * w, 0.0), h(w, 0.0), u(w, 0.0), e(columns, 0.0),
          data(columns, 0.0), moves_(of), scratch_(std::max(spread.size(), std::size_t(1)), 0.0) {}

    void begin(double t) {
        begun = true, time = t;
        std::fill(spread.begin(), spread.end(), 0.0);
        std::fill(mean.begin(), mean.end(), 0.0);
        for (const Block& b : law.blocks) {
            const double* own = law.stationary(b);
            for (int i = 0; i < b.size; i++)
                for (int j = 0; j < b.size; j++)
                    spread[(b.offset + i) * w + b.offset + j] = own[i * b.size + j];
        }
    }

    // All that is known, as numbers, and the way back: what is left to read.
    std::size_t size() const { return 2 + spread.size() + mean.size(); }
    void save(std::vector<double>& out) const {
        out.push_back(begun), out.push_back(time);
        out.insert(out.end(), spread.begin(), spread.end());
        out.insert(out.end(), mean.begin(), mean.end());
    }
    const double* restore(const double* from) {
        begun = from[0] != 0, time = from[1];
        std::copy_n(from + 2, spread.size(), spread.begin());
        std::copy_n(from + 2 + spread.size(), mean.size(), mean.begin());
        return from + size();
    }

    // On to a later time, or begin there. Returns the move; nullptr if no time has passed.
    const Move* move(double t, int which) {
        if (!begun) return begin(t), nullptr;
        if (t == time || law.moving == 0) return time = t, nullptr;
        const Move& move = moves_.over(time, t, which);
        around<false>(law, move.a.data(), w, spread.data(), scratch_.data());
        for (const Block& b : law.blocks) {
            const double* q = &move.q[b.place];
            for (int i = 0; i < b.size; i++)
                for (int j = 0; j < b.size; j++)
                    spread[(b.offset + i) * w + b.offset + j] += q[i * b.size + j];
        }
        turn<false>(law, move.a.data(), w, mean.data(), columns, scratch_.data());
        time = t;
        return &move;
    }
    // What a row with this readout and these columns would find, without learning it.
    void look(double noise) {
        const int p = law.moving;
        double* __restrict out = u.data();
        const double* __restrict readout = h.data();
        for (int j = 0; j < w; j++) out[j] = 0;
        for (int i = 0; i < p; i++) {
            if (readout[i] == 0) continue;
            const double *row = &spread[i * w], factor = readout[i];
            for (int j = 0; j < w; j++) out[j] += factor * row[j];
        }
        across = std::max(dot(w, readout, out), 0.0);
        total = across + noise;
        for (int c = columns - 1; c >= 0; c--) e[c] = data[c] - (seen = dot(w, readout, &mean[c * w]));
    }

    // Learn the row that was looked at.
    void learn() {
        const double gain = 1 / total, *__restrict seen = u.data();
        double *__restrict c_of = spread.data(), *__restrict m_of = mean.data();
        for (int i = 0; i < law.moving; i++) {
            const double factor = seen[i] * gain;
            for (int j = 0; j < w; j++) c_of[i * w + j] -= factor * seen[j];
        }
        for (int c = 0; c < columns; c++) {
            const double factor = e[c] * gain;
            for (int j = 0; j < w; j++) m_of[c * w + j] += factor * seen[j];
        }
    }

    Moves& moves() { return moves_; }

  private:
    Moves moves_;
    std::vector<double> scratch_;
};

inline int gap_of(const Rows& rows, int n) { return rows.gap ? rows.gap[n] : 0; }

}  // namespace streamgp
