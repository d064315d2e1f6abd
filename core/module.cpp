// The module streamgp._core: what Python sees of the compiled core. The mathematics is in *.hpp.
#include <cstdint>
#include <optional>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include "smoother.hpp"
#include "stream.hpp"

namespace nb = nanobind;
using namespace streamgp;

namespace {

// Arrays come as they are: nanobind copies or converts none of them (noconvert below).
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Array = nb::ndarray<nb::numpy, double>;
using Maybe = std::optional<Vector>;
using Values = std::vector<double>;

Array array(Values&& values, std::initializer_list<std::size_t> shape) {
    auto* kept = new Values(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Values*>(p); });
    return Array(kept->data(), shape.size(), shape.begin(), owner);
}

void expect(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

// A law that holds the arrays that it was made from.
struct OwnLaw {
    Law law;
    Values start, a, q;
    std::size_t gaps = 0;

    OwnLaw(const Numbers& kinds, const Numbers& sizes, const Vector& rates, int fixed, const Vector& given_start,
           const Matrix& given_a, const Matrix& given_q)
        : start(given_start.data(), given_start.data() + given_start.size()),
          a(given_a.data(), given_a.data() + given_a.size()),
          q(given_q.data(), given_q.data() + given_q.size()), gaps(given_a.shape(0)) {
        expect(kinds.size() == sizes.size() && kinds.size() == rates.size(),
               "kinds, sizes and rates of blocks differ in number");
        expect(fixed >= 0, "the number of static numbers is negative");
        for (std::size_t i = 0; i < kinds.size(); i++) law.add(kinds.data()[i], sizes.data()[i], rates.data()[i]);
        law.fixed = fixed;
        const std::size_t entries = law.given_entries;
        expect(start.size() == entries && a.size() == gaps * entries && q.size() == a.size(),
               "matrices of given blocks are not as large as the blocks");
        law.start = start.data(), law.given_a = a.data(), law.given_q = q.data();
    }
    OwnLaw(const OwnLaw&) = delete;
};

// Rows, checked: the arrays belong to Python while a call lasts.
struct Checked {
    Rows rows;
    std::size_t channels, asked = 0;

    Checked(const OwnLaw& own, const Vector& t, const Vector& y, const Vector& noise, const Numbers& channel,
            const Matrix& readouts, const Numbers& feature, const Matrix& features, const std::optional<Numbers>& gap)
        : channels(readouts.shape(0)) {
        const std::size_t n = t.size();
        expect(y.size() == n && noise.size() == n && channel.size() == n && features.shape(0) == n,
               "the columns of rows differ in length");
        expect(readouts.shape(1) == std::size_t(own.law.states()) && feature.size() == readouts.shape(1),
               "readouts have another number of states than the law");
        const bool given = own.law.given_entries > 0;
        expect(!given || (gap && gap->size() == n), "a law with given blocks needs the gap before each row");
        for (std::size_t i = 0; i < n; i++) {
            expect(std::size_t(channel.data()[i]) < channels, "a row has a channel without a readout");
            expect(i == 0 || t.data()[i] >= t.data()[i - 1], "times are not in order");
            asked += std::isnan(y.data()[i]);
            expect(std::isnan(y.data()[i]) || (noise.data()[i] > 0 && std::isfinite(noise.data()[i]) && std::isfinite(y.data()[i])),
                   "a row has a value that is not finite, or a noise variance that is not positive");
            expect(!given || std::size_t(gap->data()[i]) < own.gaps, "a row has a gap without matrices");
        }
        for (std::size_t i = 0; i < feature.size(); i++)
            expect(feature.data()[i] >= -1 && feature.data()[i] < std::int64_t(features.shape(1)),
                   "a state has a feature that rows lack");
        rows = {int(n), t.data(), y.data(), noise.data(), channel.data(), readouts.data(), feature.data(),
                features.data(), int(features.shape(1)), given ? gap->data() : nullptr};
    }
};

#define ROWS_OF_LAW                                                                                        \
    const OwnLaw &own, const Vector &t, const Vector &y, const Vector &noise, const Numbers &channel,      \
        const Matrix &readouts, const Numbers &feature, const Matrix &features, const std::optional<Numbers>&gap
#define CHECKED Checked(own, t, y, noise, channel, readouts, feature, features, gap)

nb::tuple evidence(ROWS_OF_LAW) {
    const Checked checked = CHECKED;
    const std::size_t n = t.size(), blocks = own.law.blocks.size(), states = own.law.states();
    const std::size_t entries = own.law.given_entries, width = checked.rows.width;
    Values by_rate(blocks), by_readouts(checked.channels * states), by_features(n * width), by_noise(n);
    Values by_start(entries), by_a(own.gaps * entries), by_q(own.gaps * entries);
    double value = 0;
    {
        const nb::gil_scoped_release released;
        Wanted wanted;
        wanted.by_rate = by_rate.data(), wanted.by_readouts = by_readouts.data(), wanted.by_noise = by_noise.data();
        if (width) wanted.by_features = by_features.data();
        if (entries) wanted.by_a = by_a.data(), wanted.by_q = by_q.data(), wanted.by_start = by_start.data();
        value = with_width(own.law.moving, [&](auto w) {
            Smoother<decltype(w)> smoother(own.law, checked.rows);
            const double found = smoother.forward(true);
            smoother.backward(wanted);
            return found;
        });
    }
    return nb::make_tuple(value, array(std::move(by_rate), {blocks}),
                          array(std::move(by_readouts), {checked.channels, states}),
                          array(std::move(by_features), {n, width}), array(std::move(by_noise), {n}),
                          array(std::move(by_start), {entries}), array(std::move(by_a), {own.gaps, entries}),
                          array(std::move(by_q), {own.gaps, entries}));
}

double log_evidence(ROWS_OF_LAW) {
    const Checked checked = CHECKED;
    const nb::gil_scoped_release released;
    return with_width(own.law.moving,
                      [&](auto w) { return Smoother<decltype(w)>(own.law, checked.rows).forward(false); });
}

// The numbers that pass over rows begins and ends with, checked.
template <class W>
Around around(Smoother<W>& smoother, const Maybe& before, const Maybe& after) {
    expect(!before || before->size() == smoother.before(), "`before` is of another law");
    expect(!after || after->size() == smoother.later(), "`after` is of another law");
    return {before ? before->data() : nullptr, after ? after->data() : nullptr};
}

// A pass forward and one back, with what is wanted.
double pass_over(const OwnLaw& own, const Checked& checked, const Wanted& wanted, const Maybe& before, const Maybe& after) {
    const nb::gil_scoped_release released;
    return with_width(own.law.moving, [&](auto w) {
        Smoother<decltype(w)> smoother(own.law, checked.rows);
        smoother.begin(around(smoother, before, after));
        const double found = smoother.forward(true);
        smoother.backward(wanted);
        return found;
    });
}

nb::tuple smooth(ROWS_OF_LAW, const Maybe& before, const Maybe& after) {
    const Checked checked = CHECKED;
    const std::size_t n = t.size();
    Values mean(n), variance(n);
    Wanted wanted;
    wanted.mean = mean.data(), wanted.variance = variance.data();
    const double value = pass_over(own, checked, wanted, before, after);
    return nb::make_tuple(value, array(std::move(mean), {n}), array(std::move(variance), {n}));
}

nb::tuple states(ROWS_OF_LAW, const Maybe& before, const Maybe& after) {
    const Checked checked = CHECKED;
    const std::size_t d = own.law.states(), asked = checked.asked;
    Values mean(asked * d), spread(asked * d * d);
    Wanted wanted;
    wanted.state_mean = mean.data(), wanted.state_spread = spread.data();
    pass_over(own, checked, wanted, before, after);
    return nb::make_tuple(array(std::move(mean), {asked, d}), array(std::move(spread), {asked, d, d}));
}

nb::tuple checkpoints(ROWS_OF_LAW, const Numbers& stops) {
    const Checked checked = CHECKED;
    const std::size_t count = stops.size();
    for (std::size_t i = 0; i < count; i++)
        expect(std::size_t(stops.data()[i]) < t.size() && (i == 0 || stops.data()[i] >= stops.data()[i - 1]),
               "checkpoints are not rows in order");
    Values before, later;
    std::size_t before_size = 0, later_size = 0;
    {
        const nb::gil_scoped_release released;
        with_width(own.law.moving, [&](auto w) {
            Smoother<decltype(w)> smoother(own.law, checked.rows);
            before_size = smoother.before(), later_size = smoother.later();
            before.reserve(count * before_size), later.resize(count * later_size);
            Wanted wanted;
            wanted.later = later.data(), wanted.stops = stops.data(), wanted.stops_left = int(count);
            smoother.forward(true, &before, stops.data(), int(count));
            smoother.backward(wanted);
            return 0;
        });
    }
    return nb::make_tuple(array(std::move(before), {count, before_size}), array(std::move(later), {count, later_size}));
}

nb::tuple joint(ROWS_OF_LAW, const Maybe& before, const Maybe& after) {
    const Checked checked = CHECKED;
    const std::size_t n = t.size(), asked = checked.asked;
    Values mean(n), covariance(asked * asked);
    {
        const nb::gil_scoped_release released;
        with_width(own.law.moving, [&](auto w) {
            Smoother<decltype(w)> smoother(own.law, checked.rows);
            smoother.begin(around(smoother, before, after));
            Values aside(n * smoother.width()), open(n * own.law.fixed);
            Wanted wanted;
            wanted.mean = mean.data(), wanted.aside = aside.data(), wanted.open = open.data();
            smoother.forward(true);
            smoother.backward(wanted);
            smoother.joint(aside.data(), open.data(), covariance.data());
            return 0;
        });
    }
    Values of_asked;
    for (std::size_t i = 0; i < n; i++)
        if (std::isnan(y.data()[i])) of_asked.push_back(mean[i]);
    return nb::make_tuple(array(std::move(of_asked), {asked}), array(std::move(covariance), {asked, asked}));
}

// A stream and the law that it holds on to.
struct OwnStream {
    nb::object law;
    std::unique_ptr<Stream> stream;
    explicit OwnStream(nb::object of) : law(std::move(of)), stream(stream_of(nb::cast<const OwnLaw&>(law).law)) {}

    nb::tuple append(bool learn, const Vector& t, const Vector& y, const Vector& noise, const Numbers& channel,
                     const Matrix& readouts, const Numbers& feature, const Matrix& features,
                     const std::optional<Numbers>& gap) {
        const OwnLaw& own = nb::cast<const OwnLaw&>(law);
        const Checked checked = CHECKED;
        const std::size_t n = t.size();
        Values mean(n), variance(n), log_density(n);
        {
            const nb::gil_scoped_release released;
            stream->append(checked.rows, {mean.data(), variance.data(), log_density.data()}, learn);
        }
        return nb::make_tuple(array(std::move(mean), {n}), array(std::move(variance), {n}),
                              array(std::move(log_density), {n}));
    }
};

}  // namespace

#define ROW_ARGUMENTS                                                                                    \
    nb::arg("t").noconvert(), nb::arg("y").noconvert(), nb::arg("noise").noconvert(),                    \
        nb::arg("channel").noconvert(), nb::arg("readouts").noconvert(), nb::arg("feature").noconvert(), \
        nb::arg("features").noconvert(), nb::arg("gap").noconvert() = nb::none()

#define AROUND nb::arg("before").noconvert() = nb::none(), nb::arg("after").noconvert() = nb::none()

NB_MODULE(_core, module) {
    module.doc() = "The compiled core of streamgp: filter and smoother of linear states over scalar rows.";
    nb::class_<OwnLaw>(module, "Law", "How states move: independent blocks, and static numbers.")
        .def(nb::init<const Numbers&, const Numbers&, const Vector&, int, const Vector&, const Matrix&, const Matrix&>(),
             nb::arg("kinds").noconvert(), nb::arg("sizes").noconvert(), nb::arg("rates").noconvert(),
             nb::arg("fixed"), nb::arg("start").noconvert(), nb::arg("a").noconvert(), nb::arg("q").noconvert());
    module.def("evidence", &evidence, nb::arg("law"), ROW_ARGUMENTS, "The log evidence and its exact gradient.");
    module.def("log_evidence", &log_evidence, nb::arg("law"), ROW_ARGUMENTS, "The log evidence.");
    module.def("smooth", &smooth, nb::arg("law"), ROW_ARGUMENTS, AROUND,
               "The log evidence, and mean and variance of f at each row given all rows.");
    module.def("states", &states, nb::arg("law"), ROW_ARGUMENTS, AROUND,
               "Mean and covariance of all numbers at each row that only asks, given all rows.");
    module.def("joint", &joint, nb::arg("law"), ROW_ARGUMENTS, AROUND,
               "Mean and covariance of f at the rows that only ask, given all rows.");
    module.def("checkpoints", &checkpoints, nb::arg("law"), ROW_ARGUMENTS, nb::arg("stops").noconvert(),
               "What the filter knows before some rows, and what these and all later ones say.");
    nb::class_<OwnStream>(module, "Stream", "A filter that rows are appended to.")
        .def(nb::init<nb::object>(), nb::arg("law"))
        .def("append", [](OwnStream& s, const Vector& t, const Vector& y, const Vector& noise, const Numbers& channel,
                          const Matrix& readouts, const Numbers& feature, const Matrix& features,
                          const std::optional<Numbers>& gap) {
                 return s.append(true, t, y, noise, channel, readouts, feature, features, gap);
             }, ROW_ARGUMENTS, "Learn rows. Mean and variance of f before each, and its log density.")
        .def("ahead", [](OwnStream& s, const Vector& t, const Vector& y, const Vector& noise, const Numbers& channel,
                         const Matrix& readouts, const Numbers& feature, const Matrix& features,
                         const std::optional<Numbers>& gap) {
                 return s.append(false, t, y, noise, channel, readouts, feature, features, gap);
             }, ROW_ARGUMENTS, "Mean and variance of f at rows ahead, none of which is learned.")
        .def("state", [](OwnStream& s) { Values found = s.stream->state(); const std::size_t n = found.size();
                                         return array(std::move(found), {n}); },
             "All that the filter knows, as one array.")
        .def("restore", [](OwnStream& s, const Vector& state) {
                 s.stream->restore(Values(state.data(), state.data() + state.size()));
             }, nb::arg("state").noconvert(), "Take up such a state.");
}
