// Matérn processes of unit variance as linear states.
//
// Derivative i of the function is divided by rate^i, so that the stationary covariance is free of the
// lengthscale and all depends on x = rate·gap alone. With dx the unit of time the state moves by
// ds = F s dx + sqrt(drive) e dW, where e picks the last number.
#pragma once
#include <cmath>

namespace streamgp::matern {

constexpr int LARGEST = 3;  // numbers of the state of a Matérn-5/2

constexpr double DRIVE[3] = {2.0, 4.0, 16.0 / 3.0};
constexpr double STATIONARY[3][9] = {
    {1}, {1, 0, 0, 1}, {1, 0, -1.0 / 3, 0, 1.0 / 3, 0, -1.0 / 3, 0, 1}};
constexpr double DRIFT[3][9] = {{-1}, {0, 1, -1, -2}, {0, 1, 0, 0, 0, 1, -1, -3, -3}};

// Beyond this x, what is left of the stationary covariance is no difference of nearly equal numbers.
constexpr double LONG = 1.5;

// A over a gap of x.
inline void transition(int order, double x, double* a) {
    const double e = std::exp(-x), h = x * x / 2;
    if (order == 0) {
        a[0] = e;
    } else if (order == 1) {
        a[0] = e * (1 + x), a[1] = e * x;
        a[2] = -e * x, a[3] = e * (1 - x);
    } else {
        a[0] = e * (1 + x + h), a[1] = e * x * (1 + x), a[2] = e * h;
        a[3] = -e * h, a[4] = e * (1 + x - x * x), a[5] = e * (x - h);
        a[6] = e * x * (x / 2 - 1), a[7] = e * x * (x - 3), a[8] = e * (1 - 2 * x + h);
    }
}

// Q over a gap of x, of which A is known: drive times the integral of φφᵀ, φ the last column of A.
inline void noise(int order, double x, const double* a, double* q) {
    if (order == 0) {
        q[0] = -std::expm1(-2 * x);
        return;
    }
    const int size = order + 1;
    const double* stationary = STATIONARY[order];
    if (x > LONG) {
        for (int i = 0; i < size; i++)
            for (int j = 0; j < size; j++) {
                double left = stationary[i * size + j];
                for (int k = 0; k < size; k++)
                    for (int l = 0; l < size; l++)
                        left -= a[i * size + k] * stationary[k * size + l] * a[j * size + l];
                q[i * size + j] = left;
            }
        return;
    }
    // J[k] = ∫₀ˣ sᵏ exp(−2s) ds: the last one from a series of positive terms, the others downwards by
    // J[k−1] = (xᵏ exp(−2x) + 2 J[k])/k, again of positive terms.
    double series = 0, term = 1.0 / 5;
    for (int n = 1; term > 1e-17 * series; n++) {
        series += term;
        term *= 2 * x / (5 + n);
    }
    const double fade = std::exp(-2 * x), power[5] = {1, x, x * x, x * x * x, x * x * x * x};
    double J[5];
    J[4] = power[4] * x * fade * series;
    for (int k = 4; k > 0; k--)
        J[k - 1] = (power[k] * fade + 2 * J[k]) / k;
    const double c = DRIVE[order];
    if (order == 1) {
        q[0] = c * J[2];
        q[1] = q[2] = c * (J[1] - J[2]);
        q[3] = c * (J[0] - 2 * J[1] + J[2]);
        return;
    }
    q[0] = c * J[4] / 4;
    q[1] = q[3] = c * (J[3] / 2 - J[4] / 4);
    q[2] = q[6] = c * (J[2] / 2 - J[3] + J[4] / 4);
    q[4] = c * (J[2] - J[3] + J[4] / 4);
    q[5] = q[7] = c * (J[1] - 2.5 * J[2] + 1.5 * J[3] - J[4] / 4);
    q[8] = c * (J[0] - 4 * J[1] + 5 * J[2] - 2 * J[3] + J[4] / 4);
}

}  // namespace streamgp::matern
