// The module streamgp._core: what Python sees of the compiled core. The mathematics is in *.hpp.

#include <cstddef>
#include <stdexcept>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

namespace {

// Arrays come as they are: nanobind copies or converts none of them (noconvert below).
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A placeholder that shows the way of an array into the core and of a number or an error out of it.
double inner(const Vector& left, const Vector& right) {
    if (left.shape(0) != right.shape(0))
        throw std::invalid_argument("expected two vectors of the same length");
    const nb::gil_scoped_release released;
    double sum = 0;
    for (std::size_t i = 0; i < left.shape(0); ++i)
        sum += left.data()[i] * right.data()[i];
    return sum;
}

}  // namespace

NB_MODULE(_core, module) {
    module.doc() = "The compiled core of streamgp.";
    module.def("inner", &inner, nb::arg("left").noconvert(), nb::arg("right").noconvert(),
               "The inner product of two vectors.");
}
