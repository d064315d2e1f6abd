// What rows say of the static numbers β ~ N(0, I), as a square root of their information.
//
// Rows are v = x·β + N(0, 1). They are joined to an upper triangle R by Householder's reflections, many
// at a time: R β = z is then all that they say, and ρ² what they say against it. Nothing is subtracted,
// so that β is as precise as the rows are, however small their noise.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

namespace streamgp {

class Regression {
  public:
    explicit Regression(int size) : size_(size), width_(size + 1), root_(width_ * width_, 0.0) {
        for (int j = 0; j < size; j++) root_[j * width_ + j] = 1;
        rows_.resize(std::size_t(width_) * TOGETHER);
    }

    // One row times `scale`: e[0] = v, e[1:] = x.
    void add(const double* e, double scale) {
        for (int j = 0; j < size_; j++) rows_[j * TOGETHER + waiting_] = e[1 + j] * scale;
        rows_[size_ * TOGETHER + waiting_] = e[0] * scale;
        if (++waiting_ == TOGETHER) flush();
    }

    // log of the density of all rows, and of β integrated out, less what depends on their number.
    double log_evidence() {
        flush();
        double value = -0.5 * residual() * residual();
        for (int j = 0; j < size_; j++) value -= std::log(std::fabs(root_[j * width_ + j]));
        return value;
    }

    // β's mean, and the upper triangle L = R⁻¹ with LLᵀ its covariance, row by row.
    void posterior(double* mean, double* spread) {
        flush();
        for (int i = size_ - 1; i >= 0; i--) {
            const double* own = &root_[i * width_];
            double value = own[size_];
            for (int j = i + 1; j < size_; j++) value -= own[j] * mean[j];
            mean[i] = value / own[i];
            for (int c = 0; c < size_; c++) spread[i * size_ + c] = c == i;
            for (int j = i + 1; j < size_; j++)
                for (int c = j; c < size_; c++) spread[i * size_ + c] -= own[j] * spread[j * size_ + c];
            for (int c = i; c < size_; c++) spread[i * size_ + c] /= own[i];
        }
    }

    // Mean and variance of x·β, x = e[1:].
    void predict(const double* e, double* mean, double* variance) {
        flush();
        solved_.assign(size_, 0.0);
        *mean = *variance = 0;
        for (int j = 0; j < size_; j++) {  // (x·R⁻¹), whose square is the variance
            double value = e[1 + j];
            for (int i = 0; i < j; i++) value -= root_[i * width_ + j] * solved_[i];
            solved_[j] = value / root_[j * width_ + j];
            *mean += solved_[j] * root_[j * width_ + size_];
            *variance += solved_[j] * solved_[j];
        }
    }

    // The triangle (R z; 0 ρ), row by row, to be kept and restored.
    const std::vector<double>& triangle() { return flush(), root_; }
    void restore(const double* triangle) { std::copy_n(triangle, root_.size(), root_.begin()), waiting_ = 0; }

  private:
    static constexpr int TOGETHER = 32;  // rows that are joined at once: roots are then cheap
    int size_, width_, waiting_ = 0;
    std::vector<double> root_, rows_, solved_;  // rows_: column by column

    double residual() const { return root_[size_ * width_ + size_]; }

    void flush() {
        if (waiting_ == 0) return;
        for (int j = 0; j < width_; j++) {
            double* own = &rows_[j * TOGETHER];
            double& corner = root_[j * width_ + j];
            double below = 0;
            for (int i = 0; i < waiting_; i++) below += own[i] * own[i];
            if (below == 0) continue;
            const double length = std::sqrt(corner * corner + below);
            const double turned = corner > 0 ? -length : length, first = corner - turned;
            const double factor = 2 / (first * first + below);
            for (int c = j + 1; c < width_; c++) {
                double *other = &rows_[c * TOGETHER], &entry = root_[j * width_ + c];
                double product = first * entry;
                for (int i = 0; i < waiting_; i++) product += own[i] * other[i];
                product *= factor;
                entry -= product * first;
                for (int i = 0; i < waiting_; i++) other[i] -= product * own[i];
            }
            corner = turned;
        }
        waiting_ = 0;
    }
};

}  // namespace streamgp
