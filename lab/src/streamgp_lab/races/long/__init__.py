"""Long streams: the chain beside the dense engine, the exact smoother and a Kalman filter."""
