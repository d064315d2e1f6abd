"""The engine for one input and Markov kernels: rows are kept, and the core filters them."""
