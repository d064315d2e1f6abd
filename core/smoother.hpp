// The evidence of rows, its exact gradient, and what all rows say at each of them: one pass forward and
// one back.
//
// The pass back is the adjoint of the filter, in the form of a smoother (de Jong, 1989). At each row,
// with u = C h and S of the filter, and (R, N) what later rows say:
//     e* = (e − uᵀR)/S,  D = 1/S + uᵀNu/S²,   R ← R + h e*,  N ← N + (½Dh − Nu/S)hᵀ + h(½Dh − Nu/S)ᵀ,
// and over a gap R ← AᵀR, N ← AᵀNA. R has one column of the residual at β's mean, and one for each
// direction in which β is open, so that expectations over β are sums over columns: with BB = RRᵀ − N,
//     ∂log Z/∂noise = ½(|e*|² − D),   ∂log Z/∂Q = ½BB,   ∂log Z/∂C of the first state = ½BB.
// N is kept apart from RRᵀ, and the variance of f at a row comes from the state *after* it, with r the
// row's noise and c = h·u: (r/S)(c − (r/S) uᵀNu) + r²|e*|², the sum over open directions; it loses no
// digits where noise is small.
//
// The filter's means M are those of the columns (y, x). In the columns of R they would be M T, T made of
// β's mean and the root L of its covariance; M T Rᵀ = M Rʸᵀ with Rʸ = R Tᵀ, which follows e* Tᵀ instead.
//
// Over a gap of x = rate·gap, ∂A/∂x = F A and ∂Q/∂x = drive·φφᵀ = F Q + Q Fᵀ + drive·eeᵀ. With that
// ∂log Z/∂x of a Matérn is tr(F X) + ½ drive BB_ee, X = M Rʸᵀ + C BB at the state before the row.
#pragma once
#include <memory>

#include "filter.hpp"

namespace streamgp {

struct Wanted {  // what the pass back adds to or fills in; nullptr for what nobody wants
    double* by_rate = nullptr;      // blocks, by log rate; nothing for given ones
    double* by_a = nullptr;         // gaps × entries of given blocks
    double* by_q = nullptr;
    double* by_start = nullptr;     // entries of given blocks
    double* by_readouts = nullptr;  // channels × states
    double* by_features = nullptr;  // rows × width
    double* by_noise = nullptr;     // rows
    double* mean = nullptr;         // rows: of f = h·s + x·β
    double* variance = nullptr;
    double* aside = nullptr;        // rows × w: h − N u of rows that only ask
    double* open = nullptr;         // rows × k: how f depends on the directions in which β is open
    double* state_mean = nullptr;   // rows that only ask × states: of all numbers, moving ones first
    double* state_spread = nullptr; // rows that only ask × states × states: their covariance
    double* later = nullptr;        // stops × `Smoother::later`: what those rows and all after them say
    const int* stops = nullptr;     // some rows, in order
    int stops_left = 0;
    bool gradient() const { return by_rate || by_a || by_readouts || by_features || by_start; }
};

// Where a pass over some rows begins and ends, if rows lie before and after them: the filter after those
// before (`Filter::copy`), and what those after say (`Smoother::later`). nullptr where there are none.
struct Around {
    const double *before = nullptr, *after = nullptr;
};

template <class W>
class Smoother {
  public:
    Smoother(const Law& law, const Rows& rows)
        : law_(law), rows_(rows), w_(law.moving), columns_(law.columns()),
          matrix_(std::size_t(law.moving) * w_), means_(std::size_t(columns_) * w_),
          filter_(law), regression_(law.fixed) {
        // A short tape is kept whole. A long one is written again, chunk by chunk, on the way back.
        const bool is_short = rows.count * step() * sizeof(double) <= WHOLE;
        chunk_ = is_short ? std::max(rows.count, 1) : int(std::clamp<std::size_t>(CHUNK / (sizeof(double) * step()), 16, 256));
    }

    // Take up what is known of rows before and after these ones.
    void begin(Around around) {
        around_ = around;
        if (around.before) regression_.restore(filter_.restore(around.before));
    }

    // log p(rows), given those before. With `back`, what the pass back needs is kept; `before` takes what
    // the filter knows before some rows.
    double forward(bool back, std::vector<double>* before = nullptr, const int* stops = nullptr, int count = 0) {
        double value = -regression_.log_evidence();
        const bool whole = back && chunk_ >= rows_.count;
        if (back) tape_.resize(chunk_ * step());
        saved_.clear();
        for (int n = 0; n < rows_.count; n++) {
            for (; count && *stops == n; stops++, count--) {
                filter_.save(*before);
                before->insert(before->end(), regression_.triangle().begin(), regression_.triangle().end());
            }
            if (back && n % chunk_ == 0) saved_.emplace_back(), filter_.save(saved_.back());
            if (!pass(n, whole ? &tape_[n * step()] : nullptr)) continue;
            value -= 0.5 * (LOG_TWO_PI + std::log(filter_.total));
            regression_.add(filter_.e.data(), 1 / std::sqrt(filter_.total));
            filter_.learn();
        }
        return value + regression_.log_evidence();
    }

    void backward(Wanted wanted) {
        const int k = law_.fixed;
        at_mean_.assign(k, 0.0), open_.assign(std::size_t(k) * k, 0.0);
        if (around_.after) regression_.restore(around_.after + 2 + means_ + matrix_);  // of all rows
        regression_.posterior(at_mean_.data(), open_.data());
        r_.assign(means_, 0.0), ry_ = r_;
        n_.assign(matrix_, 0.0), bent_ = n_;
        nu_.assign(w_, 0.0), side_ = nu_;
        star_.assign(columns_, 0.0), star_y_ = star_;
        scratch_.assign(matrix_ + 1, 0.0);
        if ((any_later_ = around_.after)) from_after();
        asked_left_ = std::count_if(rows_.y, rows_.y + rows_.count, [](double y) { return std::isnan(y); });
        for (int chunk = rows_.count ? (rows_.count - 1) / chunk_ : -1; chunk >= 0; chunk--) {
            const int first = chunk * chunk_, last = std::min(rows_.count, first + chunk_);
            if (chunk_ < rows_.count) replay(first, last);
            for (int n = last - 1; n >= first; n--) {
                const Step step = at(&tape_[(n - first) * this->step()]);
                back_over_row(n, step, wanted);
                while (wanted.stops_left && wanted.stops[wanted.stops_left - 1] == n) tell(n, wanted);
                if (n == 0 || rows_.t[n] == rows_.t[n - 1]) continue;
                if (wanted.gradient()) by_move(n, step, wanted);
                back_over_gap(step.a);
            }
        }
        if (wanted.by_start) by_start(wanted.by_start);
    }

    // Covariance of f between the rows that only ask, from what the pass back put aside.
    void joint(const double* aside, const double* open, double* covariance) {
        std::vector<int> asking;
        for (int n = 0; n < rows_.count; n++)
            if (std::isnan(rows_.y[n])) asking.push_back(n);
        const std::size_t m = asking.size(), k = law_.fixed;
        if (m == 0) return;
        std::vector<double> carried(m * w_, 0.0);  // covariance of the state now with each f asked before
        std::size_t met = 0;
        const int chunk = asking[0] / chunk_;
        restore(chunk);
        for (int n = chunk * chunk_; n <= asking[m - 1]; n++) {
            if (const Move* move = advance(n))
                turn<false>(law_, move->a.data(), w_, carried.data(), int(met), scratch_.data());
            if (look(n)) {
                for (std::size_t i = 0; i < met; i++) {
                    double* own = &carried[i * w_];
                    const double factor = dot(w_, filter_.h.data(), own) / filter_.total;
                    for (int j = 0; j < w_; j++) own[j] -= factor * filter_.u[j];
                }
                filter_.learn();
                continue;
            }
            std::copy_n(filter_.u.data(), int(w_), &carried[met * w_]);
            for (std::size_t i = 0; i <= met; i++) {
                double value = dot(w_, &carried[i * w_], aside + std::size_t(n) * w_);
                for (std::size_t c = 0; c < k; c++) value += open[asking[i] * k + c] * open[n * k + c];
                covariance[i * m + met] = covariance[met * m + i] = value;
            }
            met++;
        }
    }

    int width() const { return w_; }
    // How many numbers tell what the filter knows, and β.
    std::size_t before() { return filter_.size() + regression_.triangle().size(); }
    // How many tell what later rows say: when they begin and over which gap, R, N, and β.
    std::size_t later() { return 2 + means_ + matrix_ + regression_.triangle().size(); }

  private:
    static constexpr std::size_t WHOLE = std::size_t(1) << 25;  // bytes of a tape that is kept whole
    static constexpr std::size_t CHUNK = std::size_t(1) << 19;  // and of a chunk: what near caches hold

    struct Step {  // what the pass back needs of one row; the last two of them for given blocks only
        double *spread, *mean, *h, *u, *e, *a, &across, &total, &seen, *spread_before, *mean_before;
    };

    const Law& law_;
    const Rows& rows_;
    Around around_;
    const W w_;
    const int columns_;
    const std::size_t matrix_, means_;
    int chunk_;
    Filter<W> filter_;
    Regression regression_;
    std::vector<std::vector<double>> saved_;  // the filter after the last row before each chunk
    bool any_later_ = false;      // whether a row with a value has come on the way back
    std::size_t asked_left_ = 0;  // rows that only ask and whose states are not filled in yet
    std::vector<double> tape_, at_mean_, open_, r_, ry_, n_, bent_, nu_, side_, star_, star_y_, scratch_;

    bool given() const { return law_.given_entries > 0; }
    std::size_t step() const {
        return (matrix_ + means_) * (given() ? 2 : 1) + 2 * w_ + columns_ + law_.entries + 3;
    }
    Step at(double* now) const {
        auto take = [&now](std::size_t size) { return now += size, now - size; };
        double *spread = take(matrix_), *mean = take(means_), *h = take(w_), *u = take(w_);
        double *e = take(columns_), *a = take(law_.entries), *numbers = take(3);
        double *before = given() ? take(matrix_) : nullptr, *mean_before = given() ? take(means_) : nullptr;
        return {spread, mean, h, u, e, a, numbers[0], numbers[1], numbers[2], before, mean_before};
    }

    const Move* advance(int n) { return filter_.move(rows_.t[n], gap_of(rows_, n)); }
    // Look at a row. Whether it has a value.
    bool look(int n) {
        rows_.readout(n, law_, filter_.h.data(), filter_.data.data() + 1);
        const bool asks = std::isnan(rows_.y[n]);
        filter_.data[0] = asks ? 0 : rows_.y[n];
        filter_.look(asks ? 0 : rows_.noise[n]);
        return !asks;
    }
    // On to a row, and look at it; what the pass back needs goes to the tape.
    bool pass(int n, double* tape) {
        if (!tape) return advance(n), look(n);
        const Step step = at(tape);
        if (given()) {
            std::copy_n(filter_.spread.data(), matrix_, step.spread_before);
            std::copy_n(filter_.mean.data(), means_, step.mean_before);
        }
        if (const Move* move = advance(n)) std::copy_n(move->a.data(), law_.entries, step.a);
        std::copy_n(filter_.spread.data(), matrix_, step.spread);
        std::copy_n(filter_.mean.data(), means_, step.mean);
        const bool observed = look(n);
        std::copy_n(filter_.h.data(), int(w_), step.h);
        std::copy_n(filter_.u.data(), int(w_), step.u);
        std::copy_n(filter_.e.data(), columns_, step.e);
        step.across = filter_.across, step.seen = filter_.seen;
        step.total = observed ? filter_.total : 0;
        return observed;
    }
    void restore(int chunk) {
        filter_.restore(saved_[chunk].data());
    }
    void replay(int first, int last) {
        restore(first / chunk_);
        for (int n = first; n < last; n++)
            if (pass(n, &tape_[(n - first) * step()])) filter_.learn();
    }

    void back_over_row(int n, const Step& at, const Wanted& wanted) {
        const int p = law_.moving, k = law_.fixed;
        double *__restrict nu = nu_.data(), *__restrict side = side_.data(), *__restrict star = star_.data();
        const double *__restrict u = at.u, *__restrict h = at.h;
        for (int i = 0; i < w_; i++) nu[i] = 0;
        for (int i = 0; i < p; i++) {
            const double factor = u[i], *row = &n_[i * w_];
            for (int j = 0; j < w_; j++) nu[j] += factor * row[j];
        }
        const double unu = dot(w_, u, nu);
        const bool observed = !std::isnan(rows_.y[n]);
        const double g = observed ? 1 / at.total : 1, noise = observed ? rows_.noise[n] : 1;
        const double part = observed ? noise * g : 1;  // of the variance: what the row itself leaves
        // e at β's mean and in its open directions; what the filter says of f at β's mean
        double residual = at.e[0], filtered = at.seen, squares = 0;
        for (int c = 0; c < k; c++) residual -= at.e[1 + c] * at_mean_[c], filtered += at.e[1 + c] * at_mean_[c];
        const double back = dot(w_, u, r_.data());
        star[0] = (residual - back) * g;
        for (int c = 0; c < k; c++) {
            double open = 0;
            for (int l = 0; l <= c; l++) open += at.e[1 + l] * open_[l * k + c];
            star[1 + c] = (open - dot(w_, u, &r_[(1 + c) * w_])) * g;
            squares += star[1 + c] * star[1 + c];
        }
        if (wanted.mean) wanted.mean[n] = filtered + (observed ? at.across * g * residual : 0) + part * back;
        if (wanted.variance)
            wanted.variance[n] = part * std::max(at.across - part * unu, 0.0) + noise * noise * squares;
        if (!observed) {
            if (wanted.by_noise) wanted.by_noise[n] = 0;
            if (wanted.open) std::copy_n(star + 1, k, wanted.open + std::size_t(n) * k);
            if (wanted.aside)
                for (int i = 0; i < w_; i++) wanted.aside[std::size_t(n) * w_ + i] = h[i] - nu[i];
            if (wanted.state_mean) all_states(at, wanted);
            return;
        }
        any_later_ = true;
        const double told = 0.5 * (star[0] * star[0] + squares - g - unu * g * g);
        if (wanted.by_noise) wanted.by_noise[n] = told;
        if (wanted.gradient()) {
            star_y_[0] = star[0];  // e* Tᵀ
            for (int c = 0; c < k; c++) {
                double sum = -at_mean_[c] * star[0];
                for (int l = c; l < k; l++) sum += open_[c * k + l] * star[1 + l];
                star_y_[1 + c] = sum;
            }
            if (wanted.by_readouts || wanted.by_features) by_readout(n, at, g, told, wanted);
            add_outer(star_y_.data(), h, ry_.data());
        }
        add_outer(star, h, r_.data());
        const double half = 0.5 * (g + unu * g * g);
        for (int i = 0; i < w_; i++) side[i] = half * h[i] - nu[i] * g;
        for (int i = 0; i < p; i++) {
            double* __restrict row = &n_[i * w_];
            const double hi = h[i], si = side[i];
            for (int j = 0; j < w_; j++) row[j] += hi * side[j] + si * h[j];
        }
    }
    // The state there: at β's mean M T's first + C R's first, and as it depends on the directions in which β
    // is open, −M L − C R; with its covariance C − CNC at a given β. Asking rows are filled in from the last.
    void all_states(const Step& at, const Wanted& wanted) {
        const int p = law_.moving, k = law_.fixed, d = p + k;
        const std::size_t place = --asked_left_;
        double *mean = wanted.state_mean + place * d, *spread = wanted.state_spread + place * d * d;
        std::vector<double> cn(std::size_t(p) * w_, 0.0), by_open(std::size_t(d) * k, 0.0);
        for (int i = 0; i < p; i++) {
            const double* c = at.spread + i * w_;
            mean[i] = at.mean[i] + dot(w_, c, r_.data());
            for (int l = 0; l < k; l++) mean[i] -= at.mean[(1 + l) * w_ + i] * at_mean_[l];
            for (int o = 0; o < k; o++) {
                double value = -dot(w_, c, &r_[(1 + o) * w_]);
                for (int l = 0; l <= o; l++) value -= at.mean[(1 + l) * w_ + i] * open_[l * k + o];
                by_open[i * k + o] = value;
            }
            for (int l = 0; l < p && any_later_; l++)
                for (int j = 0; j < w_; j++) cn[i * w_ + j] += c[l] * n_[l * w_ + j];
        }
        for (int l = 0; l < k; l++) {
            mean[p + l] = at_mean_[l];
            for (int o = l; o < k; o++) by_open[(p + l) * k + o] = open_[l * k + o];
        }
        for (int i = 0; i < d; i++)
            for (int j = 0; j <= i; j++) {
                double value = i < p ? at.spread[i * w_ + j] : 0;
                if (i < p && any_later_) value -= dot(w_, &cn[i * w_], at.spread + j * w_);
                if (i == j) value = std::max(value, 0.0);
                for (int o = 0; o < k; o++) value += by_open[i * k + o] * by_open[j * k + o];
                spread[i * d + j] = spread[j * d + i] = value;
            }
    }

    // What row n and those after it say, for a pass that ends before it.
    void tell(int n, Wanted& wanted) {
        double* out = wanted.later + std::size_t(--wanted.stops_left) * later();
        *out++ = rows_.t[n], *out++ = 0;
        out = std::copy(r_.begin(), r_.end(), out);
        out = std::copy(n_.begin(), n_.end(), out);
        std::copy(regression_.triangle().begin(), regression_.triangle().end(), out);
    }
    // The same, taken up.
    void from_after() {
        const double* from = around_.after;
        std::copy_n(from + 2, means_, r_.begin());
        std::copy_n(from + 2 + means_, matrix_, n_.begin());
        if (law_.moving && from[0] != filter_.time)
            back_over_gap(filter_.moves().over(filter_.time, from[0], int(from[1])).a.data());
    }

    void add_outer(const double* __restrict by_column, const double* __restrict h, double* __restrict out) const {
        for (int c = 0; c < columns_; c++) {
            const double factor = by_column[c];
            for (int i = 0; i < w_; i++) out[c * w_ + i] += h[i] * factor;
        }
    }

    // ∂log Z/∂h = M T e* + C (R e* + Nu/S) + 2 ∂log Z/∂noise · u, and ∂log Z/∂x = −(e* Tᵀ) less its first.
    void by_readout(int n, const Step& at, double g, double told, const Wanted& wanted) {
        const int k = law_.fixed, p = law_.moving;
        double *__restrict side = side_.data(), *__restrict shift = scratch_.data();
        for (int i = 0; i < w_; i++) side[i] = nu_[i] * g;
        for (int i = 0; i < p; i++) shift[i] = 2 * told * at.u[i];
        for (int c = 0; c < columns_; c++) {
            const double star = star_[c], star_y = star_y_[c], *own = &r_[c * w_], *mean = at.mean + c * w_;
            for (int i = 0; i < w_; i++) side[i] += star * own[i];
            for (int i = 0; i < p; i++) shift[i] += star_y * mean[i];
        }
        for (int i = 0; i < p; i++) put(n, i, shift[i] + dot(w_, at.spread + i * w_, side), wanted);
        for (int c = 0; c < k; c++) put(n, p + c, -star_y_[1 + c], wanted);
    }
    void put(int n, int state, double value, const Wanted& wanted) const {
        const std::size_t entry = std::size_t(rows_.channel[n]) * law_.states() + state;
        const int f = rows_.feature[state];
        if (f < 0) {
            if (wanted.by_readouts) wanted.by_readouts[entry] += value;
            return;
        }
        const std::size_t seen = std::size_t(n) * rows_.width + f;
        if (wanted.by_readouts) wanted.by_readouts[entry] += value * rows_.features[seen];
        if (wanted.by_features) wanted.by_features[seen] += value * rows_.readouts[entry];
    }

    // BB = RRᵀ − N.
    void bend() {
        const int p = law_.moving;
        double* __restrict out = bent_.data();
        for (int i = 0; i < p * w_; i++) out[i] = -n_[i];
        for (int c = 0; c < columns_; c++) {
            const double* __restrict own = &r_[c * w_];
            for (int i = 0; i < p; i++) {
                const double factor = own[i];
                for (int j = 0; j < w_; j++) out[i * w_ + j] += factor * own[j];
            }
        }
    }

    void by_move(int n, const Step& at, const Wanted& wanted) {
        bend();
        const double gap = rows_.t[n] - rows_.t[n - 1];
        for (std::size_t q = 0; q < law_.blocks.size(); q++) {
            const Block& b = law_.blocks[q];
            if (b.kind == GIVEN) {
                if (wanted.by_a) by_given(n, at, b, wanted);
                continue;
            }
            if (!wanted.by_rate) continue;
            const double* drift = matern::DRIFT[b.kind];
            const int last = b.offset + b.size - 1;
            double value = 0.5 * matern::DRIVE[b.kind] * bent_[last * w_ + last];
            for (int i = 0; i < b.size; i++)
                for (int j = 0; j < b.size; j++)
                    if (drift[i * b.size + j] != 0)
                        value += drift[i * b.size + j] * crossed(at, b.offset + j, b.offset + i);
            wanted.by_rate[q] += b.rate * gap * value;
        }
    }
    // X[i, j] = (M Rʸᵀ + C BB)[i, j].
    double crossed(const Step& at, int i, int j) const {
        double value = dot(w_, at.spread + i * w_, &bent_[j * w_]);
        for (int c = 0; c < columns_; c++) value += at.mean[c * w_ + i] * ry_[c * w_ + j];
        return value;
    }
    // ∂log Z/∂A = Rʸ Mᵀ + BB A C, M and C before the move; ∂log Z/∂Q = ½BB.
    void by_given(int n, const Step& at, const Block& b, const Wanted& wanted) {
        if (b.given == 0) {
            std::copy_n(at.spread_before, matrix_, moved_before_.data());
            times<false>(law_, at.a, w_, moved_before_.data(), scratch_.data());
        }
        const std::size_t from = std::size_t(gap_of(rows_, n)) * law_.given_entries + b.given;
        for (int i = 0; i < b.size; i++)
            for (int j = 0; j < b.size; j++) {
                const int row = b.offset + i, column = b.offset + j;
                double value = 0;
                for (int l = 0; l < law_.moving; l++) value += bent_[row * w_ + l] * moved_before_[l * w_ + column];
                for (int c = 0; c < columns_; c++) value += ry_[c * w_ + row] * at.mean_before[c * w_ + column];
                wanted.by_a[from + i * b.size + j] += value;
                wanted.by_q[from + i * b.size + j] += 0.5 * bent_[row * w_ + column];
            }
    }
    std::vector<double> moved_before_ = std::vector<double>(given() ? matrix_ : 0);  // A C, C before the move

    void by_start(double* out) {
        bend();
        for (const Block& b : law_.blocks)
            for (int i = 0; b.kind == GIVEN && i < b.size; i++)
                for (int j = 0; j < b.size; j++)
                    out[b.given + i * b.size + j] += 0.5 * bent_[(b.offset + i) * w_ + b.offset + j];
    }

    void back_over_gap(const double* a) {
        turn<true>(law_, a, w_, r_.data(), columns_, scratch_.data());
        turn<true>(law_, a, w_, ry_.data(), columns_, scratch_.data());
        around<true>(law_, a, w_, n_.data(), scratch_.data());
    }
};

}  // namespace streamgp
